# pare-check: confirms what is true, refutes a forged bound, and its exit codes.
command -v pare-check >/dev/null && [ -x "$PARE_BUILD/pare-check" ] || { echo "SKIP pare-check is not built (libflint-arb-dev)"; exit 77; }
what() { sed -E 's/ - .*//; s/: [0-9.e+-]+$/: N/; s/(proven|measured) [0-9.e+-]+/\1 N/'; }
pare data model --kind bert --dim 8 --heads 2 --layers 2 --vocab 20 --sigma 0.05 -q -o m.st
pare data random --count 24 --tokens 5 --vocab 20 -q -o ids.npy
pare depth m.st --kind uniform --layers 0 --data ids.npy --prove 24 --ball 0.001 -q -o u.st >/dev/null
echo "-- all that it says"
pare-check u.st.cert.json --tries 3 | what
echo "exit ${PIPESTATUS[0]}"
echo "-- some of the inputs"
pare-check u.st.cert.json --tries 0 --inputs 5 | grep -E 'headline|new_input' | sed -E 's/[0-9.]+e-?[0-9]+/N/g'
echo "exit ${PIPESTATUS[0]}"
echo "-- the same for any number of threads"
pare-check u.st.cert.json --tries 2 -t 1 >one.txt
pare-check u.st.cert.json --tries 2 -t 3 >three.txt
cmp one.txt three.txt && echo same
# Forged numbers. Each of these says a little less than what is true.
forge() { # which, by, tries
    python3 - "$1" "$2" <<'PY'
import json, sys
c = json.load(open("u.st.cert.json"))
name, factor = sys.argv[1], float(sys.argv[2])
if name == "headline":
    c["headline"]["proven"] *= factor
else:
    kind, _, field = name.partition("/")
    claim = [t for t in c["theorems"] + c["observations"] if t["kind"] == kind][-1]
    claim[field or "bound"] *= factor
json.dump(c, open("forged.cert.json", "w"))
PY
    pare-check forged.cert.json --tries ${3:-0} -q | what | grep REFUTED
    echo "exit ${PIPESTATUS[0]}"
}
echo "-- forged"
forge headline 0.999
forge new_input.outputs 0.99
forge new_input.outputs/probability 1.0001
forge new_inputs.share 0.999
forge row_error/value 1.01
forge kl.most 0.999
forge kl.mean 0.999
forge ball.outputs 0.02 3
forge ball.score 0.02 3
sed 's/by uniform (it was/by zero (it was/; s/"uniform (it was/"zero (it was/' u.st.cert.json >forged.cert.json
pare-check forged.cert.json --tries 0 -q | grep -c REFUTED
echo "-- inputs that another seed draws"
sed 's/"seed": "0"/"seed": "1"/' u.st.cert.json >forged.cert.json
pare-check forged.cert.json --tries 0 -q | what | grep REFUTED
echo "-- another model, another input"
cp u.st keep.st
printf '\1' | dd of=u.st bs=1 seek=$(($(stat -c %s u.st) - 3)) conv=notrunc status=none
pare-check u.st.cert.json --tries 0 -q | what | grep -E 'REFUTED +(output|input|data)'
echo "exit ${PIPESTATUS[0]}"
cp keep.st u.st
pare data random --count 24 --tokens 5 --vocab 20 --seed 7 -q -f -o ids.npy
pare-check u.st.cert.json --tries 0 -q | what | grep -E 'REFUTED +(output|input|data)'
echo "exit ${PIPESTATUS[0]}"
echo "-- packed integers: not refuted, but to be unpacked"
pare quant m.st --bits 4 --allow-larger -q -o q.st >/dev/null
pare-check q.st.cert.json -q
echo "exit $?"
pare verify q.st --unpack plain -q >/dev/null
pare-check q.st.cert.json --unpacked plain -q | sed 's/;.*//'
echo "exit ${PIPESTATUS[0]}"
echo "-- what cannot be read"
rm ids.npy
pare-check u.st.cert.json -q
echo "exit $?"
head -c 500 u.st.cert.json >half.cert.json
pare-check half.cert.json -q
echo "exit $?"
pare-check nothing.cert.json
echo "exit $?"
pare-check --tries x u.st.cert.json
echo "exit $?"
pare-check
echo "exit $?"
