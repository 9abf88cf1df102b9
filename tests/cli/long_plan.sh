# Three budgets of each kind on both bundled models; what cannot be met is exit 3.
export PLAN_ALONE=yes
. $PARE_ROOT/tests/cli/plan_budgets.inc
pare data sort --count 100 --length 6 --symbols 3 --seed 1 -q -o sort.npz >/dev/null
pare data minesweeper --side 24 --seed 1 -q -o board.npz >/dev/null
echo "-- sort"
budgets $PARE_ROOT/models/sort.safetensors sort.npz "300000 150000 100000" "0.005 0.05 0.5" "0.8 0.6 0.4"
echo "-- minesweeper"
budgets $PARE_ROOT/models/minesweeper.safetensors board.npz "200000 50000 20000" "0.01 0.5 2" "0.8 0.6 0.4"
