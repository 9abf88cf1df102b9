# Figures 4 to 8 by two processes: the words, tables, runs and curves of one.
command -v mpirun >/dev/null || { echo "SKIP needs mpirun"; exit 77; }
[ -z "$PARE_SANITIZED" ] || { echo "SKIP MPI leaks under the sanitizers"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
words="repro ticket --epochs 1 -t 1"
pare $words -q -o one >one.out
mpirun --oversubscribe -n 2 pare $words -o two >two.out 2>mpi.err || cat mpi.err
diff <(sed 's/one/two/g' one.out) <(sed 's/one/two/g' two.out) && echo "same words"
diff <(sed 's,"one\(["/]\),"two\1,g; s,one/,two/,g' one/tables.json) two/tables.json && echo "same tables"
diff <(ls one/runs) <(ls two/runs) && echo "same runs"
cmp one/curves.csv two/curves.csv && echo "same curves"
