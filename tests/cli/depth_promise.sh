# --max-error without --layers looks for the fewest exact layers whose proven bound keeps it.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind gpt -o m.st --dim 16 --heads 2 --layers 3 --context 16 --vocab 40
pare data random -q --count 12 --tokens 16 --vocab 40 -o t.npy
for k in 0 1 2; do
    pare depth m.st --data t.npy --kind linear --layers $k -q --json -o "$k.st" | python3 -c "
import json, sys; print(json.load(sys.stdin)['certificate']['proven'])" >"$k"
done
python3 -c "print(*(float(open(k).read()) * 1.01 for k in '012'))" >limits
read -r most middle least <limits
for e in "$most" "$middle" "$least"; do
    pare depth m.st --data t.npy --kind linear --max-error "$e" -q -f -o o.st | grep '^cut'
    pare verify o.st.cert.json | grep -oE '^verdict +[A-Z]+'
done
# The same cut as with the number that was found; but what chose the number is not unseen.
cmp o.st 2.st && echo same bytes
pare depth m.st --data t.npy --kind linear --max-error "$most" -f -o o.st 2>&1 | grep -E '^(pare|new)|^ +at most'
# Layers that are named stay, and others with them if they must.
pare depth m.st --data t.npy --kind linear --exact 1 --max-error "$least" -q -f -o o.st | grep -E '^(cut|  1 )' | digits
# Nothing keeps it, with data or without: what was found, and nothing is written.
rm -f o.st*
pare depth m.st --data t.npy --kind linear --max-error 1e-9 -q -o o.st 2>&1 | digits
pare depth m.st --kind uniform --max-error 1e-9 -q -o o.st 2>&1 | digits
pare depth m.st --data t.npy --kind linear --max-error 1e-9 -q -o o.st 2>/dev/null
echo "exit $?"
ls o.st* 2>/dev/null | wc -l
