# Runs dealt to two processes: the bytes, the table and the lines of the log of one process.
command -v mpirun >/dev/null || { echo "SKIP needs mpirun"; exit 77; }
[ -z "$PARE_SANITIZED" ] || { echo "SKIP MPI leaks under the sanitizers"; exit 77; }
exec 2>&1
pare data minesweeper --side 12 -q -o b.npz
words="--kind graph --data b.npz --dim 8 --layers 1 --runs 3 --grid lr=0.1,0.01;epochs=2,4 -t 1 -q"
pare train $words -o one.st --log one.csv >one.out
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun --oversubscribe -n 2 pare train $words -o two.st --log two.csv >two.out 2>mpi.err || cat mpi.err
cmp one.st two.st && echo "same bytes"
diff <(sed s/one/two/ one.out) two.out && echo "same words"
diff <(grep -v '^#' one.csv | sort) <(grep -v '^#' two.csv | sort) && echo "same lines"
mpirun --oversubscribe -n 2 pare train $words --split 50 -o three.st 2>&1 | grep -c 'split 50'
echo "-- what one process cannot do ends all of them"
words="--kind graph --dim 8 --layers 1 --epochs 2 -t 1 -q"
for w in "--data b.npz --log /proc/none.csv" "--data none.npz" "--data b.npz --hidden 1"; do
    timeout 60 mpirun --oversubscribe -n 2 pare train $words $w -o four.st >four.out 2>&1
    echo "exit $?"
    grep '^pare' four.out
    rm four.out
done
ls | grep -E 'checkpoint|three'
