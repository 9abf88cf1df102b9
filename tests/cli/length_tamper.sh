# Certificates of length runs and plans that were changed by hand: each change is found.
exec 2>/dev/null
pare data model -q --kind gpt -o m.st --dim 16 --heads 2 --layers 2 --context 64
pare data random -q --count 1 --tokens 60 -o x.npy
pare length m.st --tokens 60 --oracle 16 --mode zeroref --certify -q -o q.json >/dev/null
cat >change.py <<'PY'
import hashlib, json, sys
# FILE OUT KEY VALUE [PLAN]: KEY is a path with dots; with a plan, its hash is put right.
source, out, key, value = sys.argv[1:5]
top = at = json.load(open(source))
*path, last = key.split(".")
for k in path:
    at = at[k]
at[last] = type(at[last])(value)
if len(sys.argv) > 5:
    top["plan"] = {"path": sys.argv[5],
                   "sha256": hashlib.sha256(open(sys.argv[5], "rb").read()).hexdigest()}
json.dump(top, open(out, "w"))
PY
change() { /usr/bin/python3 change.py "$@"; }
echo "-- a number or a word of the certificate: exit 4; the first is as it was"
while read -r key value; do
    change q.json.cert.json c.json $key "$value"
    pare verify c.json -q >/dev/null; echo "$key $value: exit $?"
done <<'END'
seed 0
tokens 59
length 15
mode native
norm nothing
domain all inputs
run.calls 63
run.rounds 1
run.lmax 0.001
apriori 1e-5
proven 1e-5
measured 1
measured 2e-8
measured 0
measured -1
END
/usr/bin/python3 -c '
import json
c = json.load(open("q.json.cert.json"))
for name, by in (("same", 1), ("less", 0.9988)):
    json.dump(dict(c, proven=c["proven"] * by), open(name + ".json", "w"))
json.dump(dict(c, rounding=0), open("more.json", "w"))'
for f in same less more; do pare verify $f.json -q >/dev/null; echo "proven, $f: exit $?"; done
echo "-- a plan for another model: it sees what is to come"
/usr/bin/python3 -c '
import json
p = json.load(open("q.json"))
p["pattern"] = {"kind": "full"}
p["cost"] = {k: p["cost"][k] for k in ("calls", "rounds")}
json.dump(p, open("p.json", "w"))'
change q.json.cert.json c.json tokens 60 p.json
pare verify c.json -q >/dev/null; echo "full: exit $?"
echo "-- a no is JSON, too, and nothing else"
change q.json.cert.json c.json proven 1e-5
pare verify c.json -q --json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["holds"])'
echo "-- an engine better than ours is: the bound would be too small"
while read -r key value; do
    change q.json p.json oracle.$key $value
    change q.json.cert.json c.json tokens 60 p.json
    pare verify c.json -q >/dev/null; echo "$key $value: exit $?"
done <<'END'
exp_err 1
exp_err -1
exp_flush 1000
exp_flush -1
w_min 0.5
w_min 0
END
echo "-- a plan that cannot be, or is for another input: exit 2, at once"
while read -r key value; do
    change q.json p.json $key $value
    timeout 100 pare run m.st --input x.npy --plan p.json -q -f -o y.npy >/dev/null; echo "$key $value: exit $?"
done <<'END'
tokens 4294967296
tokens 2147483648
oracle.length 4294967296
delta 2
delta -1
eps -1
cost.calls 63
cost.pairs 1
cost.flops 1
cost.lower_bound 1
END
# Of a Hugging Face model config.json is a part, of a file as of a folder: doctored, it is another model.
pare data model -q -o g.st --dim 8 --heads 2 --layers 1 --context 8 --vocab 16 --kind gpt
pare export g.st -q -o hf >/dev/null
for m in hf hf/model.safetensors; do
    pare length $m --tokens 8 --oracle 4 --certify -q -f -o h.json >/dev/null
    pare verify h.json.cert.json -q >/dev/null; echo "exit $?"
    sed -i.bak 's/"layer_norm_epsilon": [0-9.e-]*/"layer_norm_epsilon": 50/' hf/config.json
    pare verify h.json.cert.json -q 2>&1 | sed 's/is [0-9a-f]*\.\.\..*/is other/'; echo "exit ${PIPESTATUS[0]}"
    mv hf/config.json.bak hf/config.json
done
