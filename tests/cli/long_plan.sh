# Three budgets of each kind on both bundled models; what cannot be met is exit 3. Tickets take
# longest: two budgets with them on each.
export PLAN_ALONE=yes
. $PARE_ROOT/tests/cli/plan_budgets.inc
pare data sort --count 100 --length 6 --symbols 3 --seed 1 -q -o sort.npz >/dev/null
pare data minesweeper --side 16 --seed 1 -q -o board.npz >/dev/null
both() { # MODEL DATA BYTES EPS, then of those with tickets
    budgets $PARE_ROOT/models/$1 $2 "$3" "$4" "0.8 0.6 0.4" --ways width,depth --mixtures 3
    PLAN_ALONE= budgets $PARE_ROOT/models/$1 $2 "$5" "$6" "" --mixtures 2
}
echo "-- sort"
both sort.safetensors sort.npz "300000 200000 150000" "0.005 0.05 0.5" 100000 1
echo "-- minesweeper"
both minesweeper.safetensors board.npz "200000 50000 20000" "0.01 0.5 2" 30000 0.5
