# Nets without skips, norms and biases can be trained, and the theorems about them hold on what was trained:
# Theorems 3.3 (jl, qk), 4.2 (lowrank) and 4.4 (cluster) of Shirzad 2024, each finite, met, and verified.
plain="--no-skips --no-norms --no-biases --heads 1"
claims() { # CERT KIND...: of the theorems of these kinds, whether they are finite and above what was measured
    python3 - "$@" <<'PY'
import json, math, sys
c = json.load(open(sys.argv[1]))
measured, proven = c["headline"]["measured"], c["headline"]["proven"]
print("proven is above measured by less than a hundredth:", measured <= proven <= 1.01 * measured + 2e-9)
for kind in sys.argv[2:]:
    for t in c["theorems"]:
        if t["kind"] == kind: print(kind, t["parameters"], "finite", math.isfinite(t["bound"]), "met", measured <= t["bound"])
    for h in c["hypotheses"]:
        if h["kind"] == kind: print(kind, h["parameters"], "holds", h["holds"])
PY
}
below() { python3 -c "
import json, sys
t = {t['kind']: t['bound'] for t in json.load(open(sys.argv[1]))['theorems']}
print(sys.argv[2], 'is below', sys.argv[3], t[sys.argv[2]] < float(sys.argv[3]))" "$@"; }
# Minesweeper: hidden layers of 8 units, so that all rows but the first lie in 8 dimensions, and those in 7.
pare data minesweeper --side 20 -q -o board.npz
pare train --kind graph --data board.npz --dim 16 --layers 2 --ffn 8 --epochs 100 $plain -q -o net.st >train.txt
awk '/^result/ { print "learned: a test AUC above 0.6", ($4 > 0.6) }' train.txt
pare info net.st | grep -E '^(block|  )' | head -n 4
pare width net.st --data board.npz --method lowrank --dim 8 -q -v -o low.st | grep -oE 'Theorem 4.2 .Shirzad 2024. (needs nothing that this net lacks: holds|as it is true: some net of width 8)'
claims low.st.cert.json theorem42.applies theorem42.outputs
below low.st.cert.json theorem42.outputs 10
pare verify low.st.cert.json | grep -oE '^verdict +[A-Z]+'
# In four dimensions it is nearly of low rank, and the theorem weaker.
pare width net.st --data board.npz --method lowrank --dim 4 -q -o four.st >/dev/null
claims four.st.cert.json theorem42.outputs
pare verify four.st.cert.json | grep -oE '^verdict +[A-Z]+'
# Theorem 3.3: without norms nothing must be folded, and its bound is finite.
for how in "jl --qk-dim 8" "qk --qk-dim 4"; do
    pare width net.st --data board.npz --method $how -q -f -o qk.st >/dev/null
    claims qk.st.cert.json apriori.folded apriori.outputs
    python3 -c "import json; print('printed:', [(p['kind'], p['sound']) for p in json.load(open('qk.st.cert.json'))['paper']])"
    pare verify qk.st.cert.json | grep -oE '^verdict +[A-Z]+'
done
# With norms the certificate says what to do; folded, the bound is finite.
pare data model --kind graph --dim 8 --heads 1 --layers 1 -q -o normed.st
pare width normed.st --data board.npz --method qk --qk-dim 4 -q -v -o n.st | grep -o 'fold first: pare fold'
pare fold normed.st --data board.npz -q -o folded.st >/dev/null
pare width folded.st --data board.npz --method qk --qk-dim 4 -q -o n2.st >/dev/null
claims n2.st.cert.json apriori.folded apriori.outputs
# Communities: nodes see their own kind alone, features say which but for noise. Pooled rows lie in 4 clusters.
python3 - <<'PY'
import random, struct, zipfile
def npy(dtype, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, shape)
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data
kinds, each, r = 4, 30, random.Random(1)
n = kinds * each
kind = [i // each for i in range(n)]
x = [(j == kind[i]) + 0.02 * r.gauss(0, 1) for i in range(n) for j in range(kinds)]
edges = set()
for i in range(n):
    while sum(i in e for e in edges) < 6:
        j = r.randrange(kind[i] * each, (kind[i] + 1) * each)
        if j != i: edges.add((min(i, j), max(i, j)))
with zipfile.ZipFile("kinds.npz", "w") as z:
    z.writestr("node_features.npy", npy("<f8", (n, kinds), struct.pack("<%dd" % len(x), *x)))
    z.writestr("node_labels.npy", npy("<i8", (n,), struct.pack("<%dq" % n, *kind)))
    z.writestr("edges.npy", npy("<i8", (len(edges), 2), b"".join(struct.pack("<2q", *e) for e in sorted(edges))))
    for name, part in (("train", (0, 1)), ("val", (2,)), ("test", (3,))):
        z.writestr(name + "_masks.npy", npy("|b1", (1, n), bytes(i % 4 in part for i in range(n))))
PY
pare train --kind graph --data kinds.npz --dim 16 --layers 2 --epochs 60 --eval-every 60 $plain -q -o kinds.st >train.txt
awk '/^result/ { print "learned: a test accuracy above 0.9", ($4 > 0.9) }' train.txt
for rule in margin paper; do
    pare width kinds.st --data kinds.npz --method cluster --dim 4 --rule $rule -q -f -o codes.st | grep -A 1 '^cut'
    claims codes.st.cert.json cluster.radius cluster.separation apriori.outputs theorem44.outputs
    pare verify codes.st.cert.json | grep -oE '^verdict +[A-Z]+'
done
pare width kinds.st --data kinds.npz --method cluster --dim 4 -q -f -o codes.st | grep '^quality'
below codes.st.cert.json theorem44.outputs 2
# Killed and taken up again: the same bytes; not taken for a net that has its norms.
words="--kind graph --data board.npz --dim 8 --layers 2 --keep-every 1 -t 1 -q"
pare train $words --epochs 40 $plain -o whole.st >/dev/null
pare train $words --epochs 40 $plain -o cut.st >/dev/null &
until [ -e cut.st.checkpoint ] || ! kill -0 $! 2>/dev/null; do sleep 0.002; done
{ kill -9 $!; wait $!; } 2>/dev/null
pare train $words --epochs 40 $plain --resume -f -o cut.st >/dev/null
cmp whole.st cut.st && echo same bytes
pare train $words --epochs 9999999 $plain -o long.st >/dev/null 2>&1 &
for _ in $(seq 6000); do [ -e long.st.checkpoint ] && break; sleep 0.01; done
{ kill -9 $!; wait $!; } 2>/dev/null
pare train $words --epochs 9999999 --no-skips --no-biases --heads 1 --resume -o long.st 2>&1 | sed -E 's/[0-9a-f]{64}/H/g'
# Each option by itself, of every kind; what fits no kind is refused, and nothing is written.
pare data sort --count 40 -q -o sort.npz
for k in graph mlp gcn; do for o in --no-skips --no-norms --no-biases "--act tanh"; do
    pare train --kind $k --data board.npz --dim 4 --layers 1 --epochs 2 $o -q -f -o m.st >/dev/null || echo "$k $o fails"
done; done
for k in gpt encoder; do for o in --no-skips --no-norms --no-biases "--act silu" "${plain% --heads 1}"; do
    pare train --kind $k --data sort.npz --dim 4 --heads 1 --layers 1 --steps 2 $o -q -f -o m.st >/dev/null 2>t.txt || echo "$k $o fails: $(head -n 1 t.txt)"
done; done
for k in gpt llama bert graph; do for o in --no-skips --no-norms --no-biases "--act none"; do
    pare data model --kind $k --dim 8 --heads 2 $o -q -f -o m.st 2>t.txt || echo "$k $o: $? $(head -n 1 t.txt)"
done; done
pare data model --kind graph --dim 8 $plain --act tanh -q -f -o m.st && pare info m.st | grep -E '^(block|  )' | head -n 4
t() { echo "\$ pare $*"; pare "$@" 2>&1 | sed -n 1p; echo "exit ${PIPESTATUS[0]}"; }
t train --kind gpt --data sort.npz --popup --no-norms -o x.st
t train --kind graph --data board.npz --from net.st --no-skips -o x.st
t train --kind graph --data board.npz --act frob -o x.st
t data model --act frob -o x.st
ls | grep -c '^x.st'
true
