# The domain of the theorems is what the user says: inputs whose tokens are at most D apart.
. "$PARE_ROOT/tests/cli/digits.inc"
. "$PARE_ROOT/tests/cli/pure_net.inc"
pure_net skip.st 4 3 identity 0.1
pure_net bare.st 4 3 none 0.5
pare depth skip.st --kind uniform --layers 0 --input-diam 0.25 -q -o u.st | grep -A 5 '^all inputs' | grep -E '^all|moves by|: at (most|least)|^ +on ' | digits
pare verify u.st.cert.json | grep -oE '^verdict +[A-Z]+'
# Tokens become alike, the nearer they were the more.
pare depth bare.st --kind uniform --layers 0 --input-diam 0.25 -q -o r.st | grep -A 5 '^all inputs' | grep -E '^all|moves by|: at (most|least)|^ +on ' | digits
pare verify r.st.cert.json | grep -oE '^verdict +[A-Z]+'
python3 - <<'PY'
import json
s = {x["kind"]: x["bound"] for x in json.load(open("r.st.cert.json"))["theorems"]}
wide, narrow = s["rank_collapse"], s["diameter.rank_collapse"]
print("narrow inputs collapse further:", narrow < 1e-3 * wide)
PY
# The diameter that is named is the one that is proven, and one-layer cuts have it as well.
sed 's/"diameter": 0.25/"diameter": 0.5/; s/inputs of diameter 0.25/inputs of diameter 0.5/' u.st.cert.json >wrong.cert.json
pare verify wrong.cert.json 2>/dev/null | grep -oE '^verdict +[A-Z]+'
pare depth skip.st --one-layer uniform --input-diam 3 -q -f -o u.st | grep -A 5 '^all inputs' | grep -A 1 'moves by' | tail -n 2 | digits
pare verify u.st.cert.json | grep -oE '^verdict +[A-Z]+'
# What can not be asked.
pare data model -q --kind gpt -o m.st --dim 8 --heads 2
pare depth m.st --kind uniform --layers 0 --input-diam 1 -q -o x.st 2>&1 | head -n 1
pare depth skip.st --kind uniform --layers 0 --input-diam -1 -q -o x.st 2>&1 | head -n 1
ls x.st* 2>/dev/null | wc -l
# How far every one-layer network is from this one stands beside what is proven of the cut.
pure_net deep.st 3 2 identity 1
pare depth deep.st --one-layer parallel --allow-larger -q -o p.st | grep -A 5 '^all inputs' | grep -E '^all|moves by|: at (most|least)|^ +on ' | digits
pare verify p.st.cert.json | grep -oE '^verdict +[A-Z]+'
python3 - <<'PY'
import json
c = json.load(open("p.st.cert.json"))
t = {t["kind"]: t for t in c["theorems"]}
least, most = t["one_layer.least"], t["apriori.outputs"]
print("between:", least["side"], 0 < least["bound"] <= most["bound"], least["domain"] == most["domain"])
least["bound"] *= 1.0005
json.dump(c, open("wrong.cert.json", "w"))
PY
pare verify wrong.cert.json 2>/dev/null | grep '^verdict' | digits
