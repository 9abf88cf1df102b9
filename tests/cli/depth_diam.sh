# The domain of the theorems is what the user says: inputs whose tokens are at most D apart.
. "$PARE_ROOT/tests/cli/pure_net.inc"
pure_net skip.st 4 3 identity 0.1
pure_net bare.st 4 3 none 0.5
pare depth skip.st --kind uniform --layers 0 --input-diam 0.25 -q -o u.st | grep '^proven' | sed -E 's/(proven +)[^ ]+/\1N/; s/up to [0-9.]{8,}/up to N/g'
pare verify u.st.cert.json | tail -n 1
# Tokens become alike, the nearer they were the more.
pare depth bare.st --kind uniform --layers 0 --input-diam 0.25 -q -o r.st | grep '^proven' | sed -E 's/(proven +)[^ ]+/\1N/; s/up to [0-9.]{8,}/up to N/g'
pare verify r.st.cert.json | tail -n 1
python3 - <<'PY'
import json
s = {x["name"]: x["bound"] for x in json.load(open("r.st.cert.json"))["statements"]}
wide = next(s[n] for n in s if n.startswith("rank collapse"))
narrow = next(s[n] for n in s if n.startswith("inputs of diameter 0.25: rank"))
print("narrow inputs collapse further:", narrow < 1e-3 * wide)
PY
# The diameter that is named is the one that is proven, and one-layer cuts have it as well.
sed 's/inputs of diameter 0.25/inputs of diameter 0.5/' u.st.cert.json >wrong.cert.json
pare verify wrong.cert.json 2>/dev/null | tail -n 1
pare depth skip.st --one-layer uniform --input-diam 3 -q -f -o u.st | grep '^proven' | tail -n 1 | sed -E 's/(proven +)[^ ]+/\1N/; s/up to [0-9.]{8,}/up to N/g'
pare verify u.st.cert.json | tail -n 1
# What can not be asked.
pare data model -q --kind gpt -o m.st --dim 8 --heads 2
pare depth m.st --kind uniform --layers 0 --input-diam 1 -q -o x.st 2>&1 | head -n 1
pare depth skip.st --kind uniform --layers 0 --input-diam -1 -q -o x.st 2>&1 | head -n 1
ls x.st* 2>/dev/null | wc -l
# How far every one-layer network is from this one stands beside what is proven of the cut.
pure_net deep.st 3 2 identity 1
pare depth deep.st --one-layer parallel -q -o p.st | grep '^at best' | sed -E 's/[0-9]+\.[0-9]+/N/g'
pare verify p.st.cert.json | tail -n 1
python3 - <<'PY'
import json
c = json.load(open("p.st.cert.json"))
h = next(h for h in c["hypotheses"] if "the least of any one layer" in h["name"])
print("between:", 0 < h["limit"] <= h["value"] <= c["apriori"])
h["limit"] *= 1.0005
json.dump(c, open("wrong.cert.json", "w"))
PY
pare verify wrong.cert.json 2>&1 | grep -E '^(verdict|pare)' | sed -E 's/[0-9]+\.[0-9]+/N/g'
