# False certificates that earlier versions of pare believed, written by hand: pare-check refutes each.
. "$PARE_ROOT/tests/cli/check_zoo.inc"
cat >forge.py <<'PY'
import json, sys
c = json.load(open(sys.argv[1]))
def theorem(kind, **values):
    for t in c["theorems"]:
        if t["kind"] == kind and all(t["parameters"].get(k) == v for k, v in values.get("where", {}).items()):
            t["bound"] = values["bound"]
def add(kind, bound, side, norm, sentence, like, **parameters):
    domain = next(t["domain"] for t in c["theorems"] if t["kind"] == like)
    c["theorems"].append({"kind": kind, "parameters": parameters, "side": side, "bound": bound, "norm": norm,
                          "domain": domain, "sentence": sentence})
exec(sys.argv[3])
json.dump(c, open(sys.argv[2], "w"), indent=2)
PY
forge() { rm -f forged.cert.json; python3 forge.py "$1" forged.cert.json "$2"; }
verdict() { pare-check "$@" >out.txt 2>err.txt; echo "exit $?"; grep -E '^REFUTED' out.txt | sed -E 's/ - .*//; s/: [0-9.e-]+$/: N/; s/ [0-9.e-]+$/ N/'; sed -E 's/([0-9])\.[0-9]+e/\1e/' err.txt | head -n 1; }
# Sinusoidal positions of a base so large that a logarithm failed, under a bias of 1e10: the difference was lost.
echo "a logarithm that failed"
pare data random --count 2 --tokens 3 --vocab 0 --width 4 -q -o v.npy
biased_net big 1e30
pare depth big --kind uniform --layers 0 --data v.npy -q -o cut >/dev/null
pare-check cut.cert.json -q | sed 's/;.*//'
forge cut.cert.json 'c["headline"]["proven"] = 5e-10'
verdict forged.cert.json
forge cut.cert.json 'c["headline"].update(proven=1e-12, measured=1e-12); theorem("new_input.outputs", bound=5e-13)'
verdict forged.cert.json
# The base itself, which model files may no longer have: changed in the file, with every hash of the certificate.
cat >rebase.py <<'PY'
import hashlib, json, struct, sys
cert = json.load(open("cut.cert.json"))
for side, path in (("input", "big"), ("output", "cut")):
    d = open(path, "rb").read(); n = struct.unpack("<Q", d[:8])[0]; head = json.loads(d[8:8 + n])
    arch = json.loads(head["__metadata__"]["pare"])
    arch["embedding"]["positions"]["base"] = 2e130
    head["__metadata__"] = {"pare": json.dumps(arch), "pare.sha256": "0" * 64}
    text = json.dumps(head); text += " " * (-(8 + len(text)) % 64)
    text = text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest(), 1)
    data = struct.pack("<Q", len(text)) + text.encode() + d[8 + n:]
    open("far." + path, "wb").write(data)
    for key in "name", "version": arch.pop(key, None)
    digest = hashlib.sha256(data).hexdigest()
    cert[side].update(path="far." + path, sha256=digest, files={"far." + path: digest},
                      architecture=hashlib.sha256(json.dumps(arch, sort_keys=True).encode()).hexdigest())
cert["headline"]["proven"] = 5e-7
json.dump(cert, open("far.cert.json", "w"))
PY
python3 rebase.py
verdict far.cert.json
# One layer in place of all: the cut is the model itself, and the least error of any one layer is said to be 0.339.
echo "a lower bound that forgot the head"
pure_net bare 4 2 identity 1,1,1,1/1,1,1,1/0,0,0,0
python3 - <<'PY'
import hashlib, json, struct
d = open("bare", "rb").read(); n = struct.unpack("<Q", d[:8])[0]; head = json.loads(d[8:8 + n])
arch = json.loads(head["__metadata__"]["pare"])
arch["head"]["activation"] = "tanh"
head["__metadata__"] = {"pare": json.dumps(arch), "pare.sha256": "0" * 64}
text = json.dumps(head); text += " " * (-(8 + len(text)) % 64)
text = text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest(), 1)
open("one", "wb").write(struct.pack("<Q", len(text)) + text.encode() + d[8 + n:])
PY
pare depth one --one-layer uniform --data v.npy -q -o same >/dev/null 2>err.txt || cat err.txt
python3 -c "import json; c = json.load(open('same.cert.json')); print(c['headline']['measured'], [t['kind'] for t in c['theorems']])"
pare-check same.cert.json -q | sed 's/;.*//'
forge same.cert.json 'add("one_layer.least", 0.339, "lower", "largest absolute difference over the output entries", "least error of any one layer of softmax heads and an identity skip, without biases", "apriori.outputs")'
verdict forged.cert.json
# The least score error of any form of rank d, as a library printed it: above what the cut reaches.
echo "a lower bound that was not enclosed"
pare data model --kind graph --dim 4 --heads 1 --layers 1 -q -o g
pare data minesweeper --side 4 --seed 1 -q -o a.npz
pare width g --method qk --qk-dim 2 --data a.npz -q -o qk >/dev/null
forge qk.cert.json 'e = c["evidence"][0]; e["limit"] = e["value"] * 1.001'
verdict forged.cert.json
# A lower bound above the error of the very cut that is before it.
echo "a lower bound above the cut"
communities k.npz
pare train --kind graph --data k.npz --dim 16 --layers 2 --epochs 60 --eval-every 60 --no-skips --no-norms --no-biases --heads 1 -q -o kn >/dev/null
pare width kn --method lowrank --dim 3 --data k.npz -q -o few >/dev/null
forge few.cert.json 'theorem("outputs.least", bound=c["headline"]["measured"] * 1.01)'
verdict forged.cert.json
