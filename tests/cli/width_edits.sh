# What is proven beside the headline: all single-node edits, and between what numbers the auc lies.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data minesweeper -q --side 8 -o g.npz
pare data model -q --kind graph -o m.st --dim 8 --heads 2
pare width m.st --data g.npz --dim 4 --edits -q -o a.st | grep -A 2 -E '^edits|AUC of' | digits
pare verify a.st.cert.json | grep -oE '^verdict +[A-Z]+'
# Fewer rows: the most frequent ones.
pare width m.st --data g.npz --dim 4 --edit-rows 3 -q -o b.st | grep -A 2 '^edits' | digits
pare verify b.st.cert.json | grep -oE '^verdict +[A-Z]+'
# More edits, a larger bound; never below what the graph itself has.
cat >look.py <<'P'
import json, sys
def bounds(path):
    c = json.load(open(path))
    return c["headline"]["proven"], {t["kind"]: t["bound"] for t in c["theorems"]}
a, all_rows = bounds("a.st.cert.json")
b, some = bounds("b.st.cert.json")
e, f = all_rows["edits.outputs"], some["edits.outputs"]
print(a <= f <= e, all_rows["auc.least"] <= all_rows["auc.most"] <= 1)
P
python3 look.py
# A claim that says more than is true does not hold, and it names the statement.
change() { python3 - "$@" <<'P'
import json, sys
c = json.load(open("a.st.cert.json"))
for s in c["theorems"]:
    if s["kind"] == sys.argv[1]:
        exec(sys.argv[2])
json.dump(c, open("bad.cert.json", "w"))
P
pare verify bad.cert.json >said 2>&1; echo "exit $?, $(grep -oE "theorems\[[0-9]+\]\.[a-z]+|$1" said | head -n 1)"; }
change edits.outputs 's["bound"] *= 0.99'
change edits.outputs 's["parameters"]["rows"] = 5'
change edits.outputs 's["domain"] = s["domain"].replace("any one node", "any two nodes")'
change edits.rows_changed 's["bound"] = -1.0 if s["bound"] == 0 else s["bound"] / 2'
change auc.most 's["bound"] *= 0.999'
change auc.least 's["bound"] *= 1.001'
change auc.least 's["side"] = "upper"'
change auc.difference 's["bound"] *= 0.5'
# Same bytes for any number of threads.
pare width m.st --data g.npz --dim 4 --edits -q -t 1 -f -o a.st >/dev/null
cp a.st.cert.json one.json
pare width m.st --data g.npz --dim 4 --edits -q -t 3 -f -o a.st >/dev/null
cmp one.json a.st.cert.json && echo same bytes
# Too many edits are refused before anything is written; so are other patterns.
python3 - <<'P'
import struct, zipfile, io
n, width = 3000, 7
def npy(descr, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, shape)
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data
edges = [(i, (i * 7 + k * 131) % n) for i in range(n) for k in range(1, 30)]
edges = sorted({(min(a, b), max(a, b)) for a, b in edges if a != b})
x = b"".join(struct.pack("<f", (i * width + k) / 1e4) for i in range(n) for k in range(width))
with zipfile.ZipFile("wide.npz", "w") as z:
    z.writestr("node_features.npy", npy("<f4", (n, width), x))
    z.writestr("node_labels.npy", npy("<i8", (n,), b"".join(struct.pack("<q", i % 2) for i in range(n))))
    z.writestr("edges.npy", npy("<i8", (len(edges), 2), b"".join(struct.pack("<qq", *e) for e in edges)))
P
pare width m.st --data wide.npz --method qk --qk-dim 2 --edits -q -o no.st 2>&1 | sed -E 's/about [^ ]+ mul/about N mul/'
ls no.st* 2>/dev/null || echo nothing written
