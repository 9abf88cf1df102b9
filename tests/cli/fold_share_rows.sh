# Tokens whose embedding rows are near one another get one row: what is said, proven, and done with such a model.
. "$PARE_ROOT/tests/cli/digits.inc"
mask() { sed -E 's/^(speed +).*/\1N/; s/[0-9a-f]{12}\.\.\./H/' | digits; }
pare data model -q -o m.st --dim 16 --heads 2 --layers 2 --context 8
pare data model -q -o l.st --kind llama --dim 16 --heads 2 --layers 2 --context 8
echo "-- a tied head: other outputs do not change"
pare fold m.st --share-rows --distance 1.2 -q -o g.st | mask
echo "-- a head of its own: none changes"
pare fold l.st --share-rows --distance 1.2 -q -o lg.st | grep -A5 '^cut' | mask
for f in g lg; do pare verify $f.st -q | grep -oE '^verdict +[A-Z]+'; done
pare info g.st | grep '^input'
pare info g.st --json | grep -o '"shared_tokens": [0-9]*'
pare fold m.st --share-rows --distance 1.2 -qf --json -o g.st | grep -o '"shared_rows": {[^}]*}' | digits
echo "-- same bytes with any number of threads"
pare fold m.st --share-rows --distance 1.2 -q -t 3 -o h.st >/dev/null; cmp g.st h.st && echo same
echo "-- the two files as pare and ONNX see them"
pare run m.st --text abc -q -o a.npy | head -n 1
pare run g.st --text abc -q -o b.npy | head -n 1
pare export g.st -q -o g.onnx
pare export g.st -o folder/ 2>&1 | sed 's/, [0-9,]* bytes.*//'
pare info folder/ | grep '^input'
echo "-- other cuts of it, and chains"
pare fold g.st -q -o gf.st | grep '^cut'
pare compose g.st.cert.json gf.st.cert.json -q -o c.cert.json | grep '^size'
pare verify c.cert.json -q | grep -oE '^verdict +[A-Z]+'
pare depth g.st --layers 0 --kind uniform -q -o gd.st >/dev/null; pare info gd.st | grep '^input'
pare ticket g.st --bits 14 -q -o gt.st >/dev/null; pare info gt.st | grep '^input'
for i in 1 2 3 4 5 6 7 8 9; do echo "line $i of a text about nothing in particular"; done >t.txt
pare width g.st --data t.txt --keep 80% -q -o gw.st >/dev/null; pare info gw.st | grep '^input'
for f in gd gt gw; do pare verify $f.st -q | grep -oE '^verdict +[A-Z]+'; done
echo "-- tokens of the data keep their rows"
pare fold m.st --share-rows --distance 1.2 --data t.txt -q -o u.st | grep -A5 '^cut' | mask
echo "-- a certificate that promises more than is proven"
for kind in others outputs kl; do
    python3 - $kind <<'PY'
import json, sys
c = json.load(open("g.st.cert.json"))
claim = [t for t in c["theorems"] if t["kind"] == "shared_rows." + sys.argv[1]][0]
if sys.argv[1] == "others":
    claim["domain"] = "all inputs"
else:
    claim["bound"] *= 0.999
json.dump(c, open("lie.cert.json", "w"))
PY
    pare verify lie.cert.json -q 2>&1 | grep -oE '^verdict.*' | mask; echo "exit ${PIPESTATUS[0]}"
done
echo "-- what cannot be shared"
pare fold m.st --share-rows -o n.st 2>&1 | mask; echo "exit ${PIPESTATUS[0]}"
pare fold m.st --share-rows --distance 0.01 -o n.st 2>&1; echo "exit $?"
pare fold g.st --share-rows -o n.st; echo "exit $?"
pare fold g.st --distance 1 -o n.st; echo "exit $?"
pare fold g.st --share-rows --dtype f16 -o n.st; echo "exit $?"
pare data model -q --kind graph -o graph.st --dim 8 --heads 2 --layers 1
pare data minesweeper -q --side 5 -o g.npz
pare fold graph.st --share-rows --data g.npz -o n.st; echo "exit $?"
ls n.st* 2>/dev/null
