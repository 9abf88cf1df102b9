# Two processes of one thread each do a large plan in less than 1/1.7 of the time of one. A busy
# machine shows in the clock on the wall, not in the CPU time of a process: that is what is compared,
# the best of two.
command -v mpirun >/dev/null || { echo "SKIP needs mpirun"; exit 77; }
[ -z "$PARE_SANITIZED" ] || { echo "SKIP MPI leaks under the sanitizers"; exit 77; }
python=/usr/bin/python3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
pare data model -q --kind llama --dim 256 --heads 4 --layers 2 --context 16384 -o m.st >/dev/null
pare data random -q --count 1 --tokens 16384 -o x.npy
words="m.st --input x.npy --oracle 128 --mode native -t 1 -q -f"
cat >seconds.sh <<'END'
TIMEFORMAT='%U %S'
{ time pare run "$@" >/dev/null 2>err.$$; } 2>>cpu
END
for i in 1 2; do
    rm -f cpu; bash seconds.sh $words -o one.npy; cp cpu one.$i
    rm -f cpu; mpirun --oversubscribe -n 2 bash seconds.sh $words --backend mpi -o two.npy; cp cpu two.$i
done
cmp one.npy two.npy && echo "same bytes"
$python - <<'END'
def most(name):  # of the processes; the best of the runs
    return min(max(sum(map(float, line.split())) for line in open(f"{name}.{i}")) for i in (1, 2))
ratio = most("one") / most("two")
print("at least 1.7 times as fast" if ratio >= 1.7 else f"only {ratio:.2f} times as fast")
END
