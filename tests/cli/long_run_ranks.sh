# A plan of 16,384 tokens by two processes gives the bytes of one. How much faster two are is a figure of the
# machine: `make bench` shows it (bench/length.c, --ranks).
command -v mpirun >/dev/null || { echo "SKIP needs mpirun"; exit 77; }
[ -z "$PARE_SANITIZED" ] || { echo "SKIP MPI leaks under the sanitizers"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
pare data model -q --kind llama --dim 256 --heads 4 --layers 2 --context 16384 -o m.st >/dev/null
pare data random -q --count 1 --tokens 16384 -o x.npy
words="m.st --input x.npy --oracle 128 --mode native -t 1 -q"
pare run $words -o one.npy >/dev/null
mpirun --oversubscribe -n 2 pare run $words --backend mpi -o two.npy >/dev/null
cmp one.npy two.npy && echo "same bytes"
