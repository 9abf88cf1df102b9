# Runs dealt to the processes of an mpirun give what one process gives: same marks, same model.
[ -z "$PARE_SANITIZED" ] || { echo "SKIP MPI leaks by itself"; exit 77; }
command -v mpirun >/dev/null || { echo "SKIP mpirun is not installed"; exit 77; }
[ -e "$PARE_BUILD/libpare-mpi.so" ] || { echo "SKIP this build has no libpare-mpi.so"; exit 77; }
program=$PARE_BUILD/tests/train/test_runs
[ -x "$program" ] || { echo "SKIP nothing is built in $PARE_BUILD"; exit 77; }
mpi() { mpirun --allow-run-as-root --oversubscribe "$@" 2>messages; }
mkdir 1 2 3
"$program" 1
mpi -n 2 "$program" 2
mpi -n 3 "$program" 3
for f in 2/marks.0 2/marks.1 3/marks.2; do cmp 1/marks.0 $f && echo "$f: same"; done
for f in 2/model.0 2/model.1 3/model.2; do cmp 1/model.0 $f && echo "$f: same"; done

echo '- a failure that one process has is told by all'
mpi -n 2 "$program" 2 fail | sort
echo "exit ${PIPESTATUS[0]}"

echo '- no libpare-mpi.so'
mkdir -p alone/tests/train
cp "$program" alone/tests/train/
alone/tests/train/test_runs 1 2>&1 | sed 's/(.*)/(...)/'
echo "exit ${PIPESTATUS[0]}"
ldd "$PARE_BUILD/pare" | grep -c libmpi
