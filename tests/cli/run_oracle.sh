# Attention by small calls of our own kernels: every kind of model, lengths beyond the context, memory.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
exec 2>&1
agree() { # WORDS...
    rm -f y.npy
    pare run -q "$@" -o y.npy >out || { cat out; return; }
    $python -c '
import numpy as np
y, z = np.load("y.npy"), np.load("z.npy")
print("agrees" if y.shape == z.shape and abs(y - z).max() <= 1e-5 * abs(z).max() else abs(y - z).max())'
}
for k in gpt llama bert; do
    pare data model -q --kind $k --dim 16 --heads 2 --layers 2 --context 50 -o $k.st >/dev/null
done
pare data random -q --count 3 --tokens 50 -o x.npy
for k in gpt llama bert; do
    pare run -q $k.st --input x.npy -f -o z.npy >/dev/null
    for w in "--mode native" "--mode zeroref" "--backend paper"; do
        echo "$k, $w: $(agree $k.st --input x.npy --oracle 7 $w)"
    done
done
pare data model -q --kind graph --dim 16 --heads 2 --layers 2 -o graph.st >/dev/null
pare data minesweeper -q --side 6 -o g.npz
pare run -q graph.st --data g.npz -f -o z.npy >/dev/null
for w in "--mode native" "--mode zeroref" "--backend paper"; do
    echo "graph, $w: $(agree graph.st --data g.npz --oracle 7 $w)"
done
echo "-- a text; what is said of it"
pare run -q gpt.st --text "hello, world" --oracle 5 | grep -e ^engine -e ^next
pare run -q gpt.st --text "hello, world" --oracle 5 --json | grep -oE '"(backend|mode)": "[a-z]*"|"tokens": 5|"longest": [0-9]+'
echo "-- beyond the context: positions that turn know no end, learned ones do"
pare data random -q --count 1 --tokens 4096 -o long.npy
pare run -q llama.st --input long.npy | cut -c1-70
pare run -q gpt.st --input long.npy --oracle 64; echo "exit $?"
$python - <<'END'
import os, resource, subprocess
subprocess.run("pare run -q llama.st --input long.npy --oracle 64 -t 1 -o long.out.npy".split(),
               stdout=subprocess.DEVNULL, check=True)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print("memory is not that of all pairs" if most < 48 * 1024 or os.environ.get("PARE_SANITIZED") else f"{most} kB")
END
echo "-- same bytes for any number of threads"
for t in 1 3; do pare run -q llama.st --input x.npy --oracle 7 --mode zeroref -t $t -o t$t.npy >/dev/null; done
cmp t1.npy t3.npy && echo "same"
echo "-- a trace"
pare run -q gpt.st --input x.npy --oracle 7 --trace taps >/dev/null && ls taps | wc -l
