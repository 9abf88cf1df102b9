# Many short inputs in one long call (Yu 2025, Theorem 4.2): fewer calls, nothing leaks, and the
# outputs are those of the inputs one by one, to rounding.
exec 2>&1
pare data model -q --kind bert --dim 16 --heads 2 --layers 2 --context 32 -o bert.st
pare data model -q --kind gpt --dim 16 --heads 2 --layers 2 --context 32 -o gpt.st
pare data model -q --kind llama --dim 16 --heads 2 --layers 2 --context 32 -o llama.st
printf 'sentence\tlabel\na short one\t0\nno\t1\nand here is a longer one\t0\nyes it is\t1\nfour words are here\t1\nthe end\t0\n' >s.tsv
# What is measured is rounding, which is the CPU's: it is compared with a limit, and not shown.
pack() {
    pare length "$@" | awk -v limit=${limit:-5e-06} '
        /^rounding/ { sub(/measured [0-9.e+-]+/, ($11 <= $5 / 50 ? "measured less than a 50th of it" : "measured more than a 50th of it")) ; sub($5, sprintf("%.1e", $5)) }
        /^difference/ { sub("at most " $7, $7 + 0 <= limit + 0 ? "at most " limit : "far more: " $7) }
        { print }'
    echo "exit ${PIPESTATUS[0]}"
}
echo "-- sentences of different lengths, in f32, in f64, and on the paper's engine"
pack bert.st --pack --data s.tsv --oracle 64
limit=1e-13 pack bert.st --pack --data s.tsv --oracle 64 --dtype f64 | grep -v '^inputs'
pack bert.st --pack --data s.tsv --oracle 64 --backend paper | grep -E 'engine|calls|size|leak|diff'
echo "-- one call holds fewer of them: no code where an input is alone"
pack bert.st --pack --data s.tsv --oracle 24 | grep -E 'calls|rows|size'
echo "-- causal, with rotary positions and shared keys; outputs as pare run has them"
pare data random --count 10 --tokens 7 --vocab 256 -q -o r.npy
pare run llama.st --data r.npy -q -o want.npy >/dev/null
pack llama.st --pack --data r.npy --oracle 64 -q -o y.npy
near() {
    /usr/bin/python3 -c '
import array, sys
a, b = (open(f, "rb").read() for f in sys.argv[1:])
x, y = array.array("f", a[128:]), array.array("f", b[128:])
print(a[:128] == b[:128], len(x), max(abs(u - v) for u, v in zip(x, y)) <= 1e-5)' $1 $2
}
near y.npy want.npy
echo "-- a text in windows, the last of them shorter: rows one below the other"
seq 1 60 >t.txt
pare length gpt.st --pack --data t.txt --oracle 128 -o rows.npy | grep -E "^(inputs|calls)"
echo "-- the same bytes with one thread, and by another program"
pare length llama.st --pack --data r.npy --oracle 64 -t 1 -q -o y1.npy >/dev/null
cmp y.npy y1.npy
cc -O1 -o attention $PARE_ROOT/examples/pipe/attention.c -lm
pack llama.st --pack --data r.npy --oracle 64 --backend pipe:./attention -q -o p.npy | grep -E 'engine|calls|size|diff'
near p.npy want.npy
echo "-- a penalty that is too small: what leaks is bounded, and shows"
pare length bert.st --pack --data s.tsv --oracle 64 --penalty 6 |
    awk '/^leak/ { print; print ($12 > 0.1 ? "so much may leak" : "") } /^penalty/ { print } /^diff/ { print ($7 > 1e-3 ? "it leaks" : "nothing to see") }'
pare length bert.st --pack --data s.tsv --oracle 64 --penalty 40 | grep -E '^(penalty|leak|rounding)'
echo "-- JSON"
pare length bert.st --pack --data s.tsv --oracle 64 --json | /usr/bin/python3 -c '
import json, sys
p = json.load(sys.stdin)["pack"]
print({k: p[k] for k in p if k not in ("difference", "proven", "measured")})
print(p["difference"] <= 5e-6, 0 < p["measured"] <= p["proven"] < 1e-3)'
echo "-- refused, by name, and nothing is written"
no() { pare length "$@" -q -o no.npy; echo "exit $?"; ls no.npy 2>/dev/null; }
no bert.st --pack --oracle 64
no bert.st --pack --data s.tsv
no bert.st --pack --data s.tsv --oracle 23
no bert.st --pack --data s.tsv --oracle 64 --mode zeroref
no bert.st --pack --data s.tsv --oracle 64 --backend mpi
no bert.st --pack --data s.tsv --oracle 64 --backend gpu
no bert.st --pack --data s.tsv --oracle 64 --backend 'pipe:exit 3'
no bert.st --pack --data missing.tsv --oracle 64
no bert.st --oracle 64 --penalty 3
pare data minesweeper -q --side 5 -o board.npz
pare data model -q --kind graph -o graph.st
no graph.st --pack --data board.npz --oracle 64
pare length bert.st --pack --data s.tsv --oracle 64 -q -f -o s.tsv; echo "exit $?"
ls *.npy
