# Attention layers replaced: every kind, its certificate, what a user sees.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind gpt -o m.st --dim 16 --heads 2 --layers 3 --context 16 --vocab 40
pare data random -q --count 12 --tokens 16 --vocab 40 -o t.npy
mask() { sed -E 's/^(speed +).*/\1N/; s/^(ms[ a-z]*) .*/\1 N/' | digits; }
pare depth m.st --data t.npy --kind affmix --layers 1 -q -o o.st | mask
pare verify o.st.cert.json | grep -oE '^verdict +[A-Z]+'
for how in zero const uniform constq linear pool auto "uniform --exact 0,2" "zero --select exhaustive" "zero --select loo" "zero --select block-influence"; do
    case $how in *exact*) layers= ;; *) layers="--layers 1" ;; esac
    pare depth m.st --data t.npy --kind $how $layers -q -f -o o.st | grep -E '^(cut|proven) |^ {13}.* -> ' | mask
    pare verify o.st.cert.json | grep -oE '^verdict +[A-Z]+'
done
# Nothing is fitted, nothing is chosen: no data is needed, or all of it is held out.
pare depth m.st --kind uniform --layers 0 -q -f -o o.st | grep -E '^cut|^ +on '
pare depth m.st --kind uniform --layers 0 --data t.npy -q -f -o o.st | grep -E '^ +on '
pare depth m.st --kind linear --layers 0 --data t.npy -q -f -o o.st | grep -E '^new|^ +(on|provided|at most) ' | mask
pare depth m.st --kind linear --layers 0 --data t.npy --heldout t.npy -f -o o.st 2>&1 | grep -E '^(pare|new) ?|^ +(on|provided|at most)'
pare data random -q --count 3 --tokens 16 --vocab 40 --seed 5 -o others.npy
pare depth m.st --kind linear --layers 0 --data t.npy --heldout others.npy -f -o o.st 2>&1 | grep -E '^(pare|new) ?|^ +(on|provided|at most)' | mask
# Of a text the first tokens are proven on: the new one is cut as well. A file that holds the inputs
# that were fitted to and a byte more is no other data.
pare data model -q --kind gpt -o w.st --dim 16 --heads 2 --layers 2 --context 80
for i in $(seq 1 90); do echo "line $i says that $((i * i % 97)) is not $((i * 7 % 89))"; done >t.txt
{ cat t.txt; echo; } >more.txt
tac t.txt >other.txt
for held in more other; do
    pare depth w.st --kind linear --layers 0 --data t.txt --heldout $held.txt -f -o o.st 2>&1 | grep -E '^(pare|new) ?|^ +(on|provided|at most)' | mask
done
pare verify o.st.cert.json | grep -oE '^verdict +[A-Z]+'
pare depth m.st --data t.npy --kind auto --layers 1 -q --json -f -o o.st | python3 -c "
import json, sys
r = json.load(sys.stdin)
print(sorted(r))
print(sorted(r['cut']), [sorted(l) for l in r['cut']['layers']][0], r['certificate']['proven'] >= r['certificate']['measured'], r['metric']['name'])"
# Same command, same bytes, for any number of threads.
pare depth m.st --data t.npy --kind auto --layers 1 -q -t 1 -o a.st >/dev/null
pare depth m.st --data t.npy --kind auto --layers 1 -q -t 3 -o b.st >/dev/null
cmp a.st b.st && sed 's/a\.st/b.st/' a.st.cert.json | cmp - b.st.cert.json && echo same bytes
# A cut of a cut, and both as one chain.
pare depth m.st --kind zero --exact 0,1 -q -o c1.st >/dev/null && pare depth c1.st --kind uniform --exact 0 -q -o c2.st | grep -A 4 '^cut' | mask
pare compose c1.st.cert.json c2.st.cert.json -q -o chain.cert.json >/dev/null && pare verify chain.cert.json | grep -oE '^verdict +[A-Z]+'
# The cut model goes on with a text as the other did: with a cache.
pare run o.st --input t.npy -q -o y.npy >/dev/null && echo runs
# Graphs: what the cut is fitted to is what it is proven on, and nothing is said of a new graph.
pare data minesweeper -q --side 8 -o g.npz
pare data model -q --kind graph -o g.st --dim 8 --heads 2
pare depth g.st --data g.npz --kind linear --layers 0 -f -o o.st 2>&1 | grep -E '^(pare|quality|cut|new)|^ +on ' | mask
pare verify o.st.cert.json | grep -oE '^verdict +[A-Z]+'
