# The page of two processes is the page of one.
command -v mpirun >/dev/null || { echo "SKIP needs mpirun"; exit 77; }
[ -z "$PARE_SANITIZED" ] || { echo "SKIP MPI leaks under the sanitizers"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
words="repro all --only tables,calls,errata,orders --side 8 --large 1 --runs 2 --epochs 2 -t 1 -o out"
mkdir one two
(cd one && pare $words -q >summary)
(cd two && mpirun --oversubscribe -n 2 pare $words >summary 2>mpi.err || cat mpi.err)
cmp one/summary two/summary && cmp one/out/report.html two/out/report.html && echo "same page"
for s in width depth length errata; do diff <(ls one/out/$s/runs) <(ls two/out/$s/runs) && echo "same runs of $s"; done
grep -oE ', 0 of them were there already' two/mpi.err
(cd two && timeout 60 mpirun --oversubscribe -n 2 pare repro all --only nothing -q 2>&1 | grep '^pare' | cut -c1-40)
