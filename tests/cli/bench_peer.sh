# Peers of pare bench: one that is honest, one that lies, some that break. They speak the protocol of
# docs/bench.md.
python=/usr/bin/python3 # the one that sees Debian's numpy
[ -x $python ] || python=python3
cat >peer.py <<'EOF'
import json, sys
import numpy as np
mood = sys.argv[1]
def load(folder, name): return np.load(f"{folder}/{name}.npy")
def work():
    if case["kind"] == "dense": return load(folder, "x") @ load(folder, "w").T + load(folder, "b")
    h, n, d = case["heads"], case["n"], case["d"]
    q, k, v = [load(folder, x).astype(float).reshape(n, h, d).transpose(1, 0, 2) for x in "qkv"]
    s = q @ k.transpose(0, 2, 1) / d ** 0.5
    if case["mask"] == "causal": s = np.where(np.tri(n, dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return (p / p.sum(-1, keepdims=True) @ v).transpose(1, 0, 2)
if mood == "rude": print("good morning", flush=True), sys.stdin.read(), sys.exit(0)
if mood == "dead": sys.exit(0)
print("pare-peer 1", "tired" if mood == "tired" else "toy", flush=True)
runs = 0
for line in sys.stdin:
    word, *rest = line.split()
    if word == "load":
        threads, folder = rest
        case = json.load(open(folder + "/case.json"))
        print("no" if mood == "lazy" or case["kind"] in ("graph", "gpt") else "ok mode" + threads)
    elif word == "clock":
        print("ok" if rest == ["cpu"] and mood != "vague" else "no")
    elif word == "run":
        runs = runs + 1
        if runs > 2 and mood == "tired": sys.exit(0)
        print("ms", *["nan" if mood == "vague" else "1e6"] * int(rest[0]))
    else:
        y = work()
        if mood == "liar": y[-1] *= 1.001  # one row a little wrong
        np.save(rest[0], y[:-1] if mood == "short" else y)
        print("ok")
    sys.stdout.flush()
EOF
try() { # mood, names
    local mood=$1
    shift
    echo "- $mood"
    pare bench --quick -t 2 "$@" --peer "$python peer.py $mood" >out.csv 2>err
    echo "exit $?"
    sed -E 's/peer [^ ]*python3/peer python3/; s/[0-9.]+e-[0-9]+/SMALL/; s/[0-9.]+, largest/SMALL, largest/; s/entry [0-9.]+/entry X/' err
}
peers() { grep -v '^#' out.csv | sed 1d | cut -d, -f1,3,9 | sort | uniq -c | sed 's/^ *//'; }

try honest dense attention forward
peers
# It says that each of its runs took 1000 s: the ratio and its value follow from that.
python3 - <<'EOF'
import csv
rows = [r for r in csv.DictReader(l for l in open("out.csv") if not l.startswith("#")) if r["peer"]]
for r in rows:
    flops = 2 * 64 * 32 * 48 if r["name"] == "dense" else 4 * 96 * 96 * 64 / (1 + ("causal" in r["shape"]))
    took = flops / float(r["ours"]) / 1e9
    assert abs(float(r["ratio"]) * took / 1000 - 1) < 0.05, r
    assert float(r["peer_value"]) == float(r["peer_median"]) == 0, r  # in Gflop/s
print(len(rows), "ratios are right")
EOF
try liar attention
try short dense && peers
try vague dense && peers
try tired dense hash && peers
try lazy dense && peers
try rude dense && peers
try dead dense && peers
echo '- two of them'
pare bench --quick -t 1 dense --peer "$python peer.py honest; $python peer.py honest" >out.csv
peers
echo '- the first of two breaks, the other is still there'
pare bench --quick -t 1 dense --peer "$python peer.py tired; $python peer.py honest" -q >out.csv 2>err
echo "exit $?"
peers
echo '- CPU time: the peer is asked for it'
pare bench --quick --cpu -t 2 dense --peer "$python peer.py honest" >out.csv
grep '^# clock' out.csv
peers
try vague --cpu dense && peers
