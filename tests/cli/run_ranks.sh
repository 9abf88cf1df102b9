# Attention by several processes: the bytes of one, for any number; none left and no file when one
# of them is killed.
command -v mpirun >/dev/null || { echo "SKIP needs mpirun"; exit 77; }
[ -z "$PARE_SANITIZED" ] || { echo "SKIP MPI leaks under the sanitizers"; exit 77; }
exec 2>&1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cc -O1 -o attention $PARE_ROOT/examples/pipe/attention.c -lm
pare data model -q --kind llama --dim 16 --heads 1 --layers 2 --context 90 -o m.st >/dev/null
pare data random -q --count 3 --tokens 90 -o x.npy
words="m.st --input x.npy --oracle 16 -q -t 1"
for w in "--mode native" "--mode zeroref" "--f64" "--backend paper" "--backend pipe:./attention"; do
    pare run $words $w -f -o one.npy >one.out
    for n in 2 4; do
        mpirun --oversubscribe -n $n pare run $words $w -f -o many.npy >many.out 2>mpi.err || cat mpi.err
        cmp one.npy many.npy && echo "$w, $n processes: the same bytes"
        diff <(grep -v ^time one.out) <(grep -v ^time many.out)
    done
done
echo "-- heads that draw: how many there are is part of what is drawn"
pare data model -q --kind bert --dim 16 --heads 2 --layers 1 --context 600 --sigma 0.02 -o s.st >/dev/null
pare data random -q --count 1 --tokens 600 -o s.npy
sampled="s.st --input s.npy --oracle 256 --mode sample --eps 1 --delta 0.5 -q -t 1"
pare run $sampled -f -o one.npy | grep -o 'rows were computed exactly.*'
for n in 2 3; do
    mpirun --oversubscribe -n $n pare run $sampled -f -o many.npy >many.out 2>mpi.err || cat mpi.err
    cmp one.npy many.npy && echo "$n processes: the same bytes"
done
echo "-- of a longer input, rows are shared as well"
for kind in gpt llama bert; do
    pare data model -q --kind $kind --dim 24 --heads 3 --layers 2 --context 600 -f -o long.st >/dev/null
    pare data random -q --count 1 --tokens 600 -f -o long.npy
    pare run long.st --input long.npy --oracle 64 -q -t 1 -f -o one.npy >/dev/null
    for n in 2 4; do
        mpirun --oversubscribe -n $n pare run long.st --input long.npy --oracle 64 -q -t 1 -f -o many.npy >/dev/null 2>mpi.err || cat mpi.err
        cmp one.npy many.npy && echo "$kind, $n processes: the same bytes"
    done
done
echo "-- what one process cannot do ends all of them"
timeout 60 mpirun --oversubscribe -n 2 pare run $words --backend pipe:false -o bad.npy >bad.out 2>&1
echo "exit $?"
grep '^pare' bad.out
echo "-- a process is killed"
pare data model -q --kind llama --dim 64 --heads 4 --layers 8 --context 4096 -o big-$$.st >/dev/null
pare data random -q --count 1 --tokens 4096 -o big.npy
timeout 100 mpirun --oversubscribe -n 2 pare run big-$$.st --input big.npy --oracle 16 --mode zeroref -q -t 1 -o big.out.npy >killed.out 2>&1 &
for i in $(seq 600); do
    rank=$(ps -e -o pid=,args= | awk -v m=big-$$.st '$2 == "pare" && $4 == m { print $1; exit }')
    [ -z "$rank" ] || break
    sleep 0.1
done
sleep 1
kill -9 $rank
wait $!
[ $? -ne 0 ] && echo "not 0"
ls big.out.npy 2>/dev/null
ps -e -o args= | grep -c "^pare run big-$$.st"
