# Runs shared by two processes: the tables of one process, every run made once; what one cannot do
# ends both.
command -v mpirun >/dev/null || { echo "SKIP needs mpirun"; exit 77; }
[ -z "$PARE_SANITIZED" ] || { echo "SKIP MPI leaks under the sanitizers"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
words="repro width --side 8 --large 1 --runs 3 --epochs 3 -t 1"
pare $words -q -o one >one.out
mpirun --oversubscribe -n 2 pare $words -o two >two.out 2>mpi.err || cat mpi.err
diff <(sed 's/one/two/g' one.out) two.out && echo "same words"
diff <(sed 's/\bone\b/two/g' one/tables.json) two/tables.json && echo "same tables"
diff <(ls one/runs) <(ls two/runs) && echo "same runs"
grep -o '8 runs, 0 of them were there already' mpi.err
for w in "--data none.npz -o three" "-o no/such"; do
    timeout 60 mpirun --oversubscribe -n 2 pare $words -q $w >four.out 2>&1
    echo "exit $?"
    grep '^pare' four.out
done
