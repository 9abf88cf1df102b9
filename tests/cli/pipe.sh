# An engine that is another program: the clients of examples/pipe, and programs that do it wrong.
# How many calls there are, and how wide, is the planner's affair.
some='s/[0-9,]+ calls/some calls/; s/to [0-9]+:/to some:/; s/(rows|[78]) of [0-9]+/\1 of some/g; s/[0-9]+ results came for/some results came for/; s/call [0-9]{2,}/call some/; s/token [0-9]+/token some/g'
exec > >(sed -E "$some") 2>&1
python=/usr/bin/python3
compare() { # A B: two .npy of f32
    $python -c '
import sys
a, b = (open(f, "rb").read() for f in sys.argv[1:])
import array
x, y = array.array("f", a[-len(a) + 128:]), array.array("f", b[-len(b) + 128:])
most = max(abs(v) for v in y)
off = max(abs(u - v) for u, v in zip(x, y))
print("agrees" if len(x) == len(y) and off <= 1e-5 * most else f"off by {off}")' $1 $2
}
cc -O1 -o attention-$$ $PARE_ROOT/examples/pipe/attention.c -lm || exit 77
pare data model -q --kind llama --dim 16 --heads 2 --layers 2 --context 40 -o m.st >/dev/null
pare data model -q --kind bert --dim 16 --heads 2 --layers 1 --context 40 -o b.st >/dev/null
pare data random -q --count 1 --tokens 40 -o x.npy
for m in m b; do
    pare run -q $m.st --input x.npy -o $m.npy >/dev/null
    pare run -q $m.st --input x.npy --oracle 8 --backend pipe:./attention-$$ -f -o y.npy | grep engine | sed "s/-$$//"
    compare y.npy $m.npy
done
pare run -q m.st --input x.npy --oracle 64 --backend pipe:./attention-$$ -f -o y.npy | grep engine | sed "s/-$$//"
compare y.npy m.npy
echo "-- programs that can do more: partial results, a bias; and less: two calls at a time"
for f in partial bias pair; do
    pare run -q m.st --input x.npy --oracle 8 --backend "pipe:$python $PARE_ROOT/tests/peers/faulty.py $f" \
        -f -o y.npy | sed -n 's/.*tokens, /by /p'
    compare y.npy m.npy
done
echo "-- no client is left behind, and nothing half-written"
ps -e -o args= | grep -c "^[.]/attention-$$"
echo "-- wrong answers"
try() {
    rm -f z.npy
    timeout 60 pare run -q m.st --input x.npy --oracle 8 --timeout ${2:-30} -o z.npy \
        --backend "pipe:exec $python $PARE_ROOT/tests/peers/faulty.py $1 2>/dev/null" >out 2>&1
    echo "$1: exit $? $(sed 's/: exec [^ ]*python.*//' out | grep -v -e ^output -e ^engine -e ^time)"
    [ ! -e z.npy ] || echo "$1 wrote z.npy"
}
for f in none text absent version long f64 nan short narrow die kill no few garbage cut more kind; do try $f; done
try mute 0.5
try hang 0.5
rm -f z.npy
pare run -q m.st --input x.npy --oracle 8 --backend "pipe:no-such-program-here" -o z.npy 2>&1 | grep -v 'sh: '; echo "exit ${PIPESTATUS[0]}"
pare run -q m.st --input x.npy --oracle 8 --backend "pipe:cat 2>/dev/null" -o z.npy; echo "exit $?"
pare run -q m.st --input x.npy --oracle 8 --backend "pipe:true" -o z.npy; echo "exit $?"
pare run -q m.st --input x.npy --f64 --oracle 8 --backend "pipe:./attention-$$" -o z.npy 2>&1 | sed "s/-$$//"; echo "exit ${PIPESTATUS[0]}"
ls z.npy 2>/dev/null
echo "-- options"
pare run m.st --input x.npy --oracle 8 --backend gpu; echo "exit $?"
pare run m.st --input x.npy --mode native | head -1
pare run m.st --text hi --tokens 4 --oracle 8 | head -1
