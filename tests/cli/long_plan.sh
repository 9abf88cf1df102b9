# Three budgets of each kind on both bundled models; what cannot be met is exit 3. Tickets take
# longest: one budget with them.
export PLAN_ALONE=yes
. $PARE_ROOT/tests/cli/plan_budgets.inc
pare data sort --count 100 --length 6 --symbols 3 --seed 1 -q -o sort.npz >/dev/null
pare data minesweeper --side 16 --seed 1 -q -o board.npz >/dev/null
models=$PARE_ROOT/models two="--directions width,depth --mixtures 3"
echo "-- sort"
budgets $models/sort.safetensors sort.npz "300000 200000 150000" "0.005 0.05 0.5" "0.6 0.4 0.2" $two
echo "-- minesweeper"
budgets $models/minesweeper.safetensors board.npz "200000 50000 20000" "0.4 0.5 2" "0.6 0.4 0.2" $two
echo "-- with tickets"
PLAN_ALONE= budgets $models/minesweeper.safetensors board.npz 50000 "" "" --mixtures 2
