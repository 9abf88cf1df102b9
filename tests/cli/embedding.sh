# Sentence encoders: what is proven of cosines and nearest neighbors, verified, forged and composed.
. "$PARE_ROOT/tests/cli/digits.inc"
cat > encoder.py <<'P'
# The random encoder of `pare data model` without its classifier, pooled by the mean.
import hashlib, json, struct, sys
d = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", d[:8])[0]
old, body, data = json.loads(d[8:8 + n]), d[8 + n:], b""
arch = json.loads(old["__metadata__"]["pare"])
arch["head"] = {"pool": "mean", "activation": "none", "tied": False}
new = {"__metadata__": {"pare": json.dumps(arch), "pare.sha256": "0" * 64}}
for name, t in old.items():
    if name == "__metadata__" or name.startswith("head."): continue
    a, b = t["data_offsets"]
    new[name] = dict(t, data_offsets=[len(data), len(data) + b - a])
    data += body[a:b]
text = json.dumps(new)
text += " " * (-(8 + len(text)) % 64)
text = text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest(), 1)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text.encode() + data)
P
cat > forge.py <<'P'
# Multiplies the bound of one kind.
import json, sys
path, kind, factor = sys.argv[1:4]
c = json.load(open(path))
for t in c["theorems"]:
    if t["kind"] == kind: t["bound"] *= float(factor)
json.dump(c, open("forged.cert.json", "w"))
P
pare data model -q --kind bert --dim 16 --layers 2 --heads 2 --context 32 -o bert.st
python3 encoder.py bert.st e.st
pare data random -q --count 160 --tokens 12 -o i.npy
mask() { digits; }
say() { grep -E 'cosine|neighbor|^new input|% of new' | mask; }
pare width e.st --data i.npy --method svd --keep 0.9 --prove 40 -q -o w.st | say
pare verify w.st | grep -E '^verdict|cosine|neighbor' | mask
pare verify -v w.st | grep -E 'cosine|nearest' | mask
for k in cosine.distance neighbors.changed new_input.cosine_distance; do
    python3 forge.py w.st.cert.json $k 1.5 && pare verify forged.cert.json -q >/dev/null && echo "$k looser: holds"
    python3 forge.py w.st.cert.json $k 0.99 && pare verify forged.cert.json -q 2>/dev/null | head -1 | mask
    pare verify forged.cert.json -q >/dev/null 2>&1; echo "exit $?"
done
pare depth w.st --data i.npy --layers 1 --prove 40 -q -o d.st | say
pare compose w.st.cert.json d.st.cert.json -q -o chain.cert.json | say
pare verify chain.cert.json | grep -E '^verdict|cosine' | mask
python3 forge.py chain.cert.json cosine.distance 0.99; pare verify forged.cert.json -q >/dev/null 2>&1; echo "exit $?"
pare ticket e.st --data i.npy --prove 8 -q -o t.st 2>&1 | say
pare fold e.st --data i.npy -q -o f.st | say
pare verify f.st | grep -E '^verdict|cosine' | mask
# Language models: the distribution over tokens.
pare data model -q --kind gpt --dim 16 --layers 2 --heads 2 --context 32 -o g.st
pare width g.st --data i.npy --method svd --keep 0.9 --prove 8 -q -o gw.st --json | python3 -c '
import json, sys
c = json.load(sys.stdin)["certificate"]
print(0 < c["kl_mean"] < c["kl_most"], sorted(k for k in c if "cosine" in k or "neighbors" in k))'
for k in kl.mean kl.most new_input.kl; do
    python3 forge.py gw.st.cert.json $k 0.99; pare verify forged.cert.json -q >/dev/null 2>&1; echo "exit $?"
done
