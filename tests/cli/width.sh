# Graph transformers made narrower: every method, its certificate, what a user sees.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data minesweeper -q --side 10 -o g.npz
pare data model -q --kind graph -o m.st --dim 16 --heads 2
mask() { sed -E 's/^(speed +).*/\1N/; s/^(ms[ a-z]*) .*/\1 N/' | digits; }
pare width m.st --data g.npz --dim 8 -q -o low.st | mask
pare verify low.st.cert.json | grep -oE '^verdict +[A-Z]+'
for how in "exact" "leverage --dim 8 --ffn-dim 12" "leverage --ffn-dim 12 --rows sample" "jl --qk-dim 4 --trials 9" \
    "qk --qk-dim 4" "lowrank --dim 8 --qk-dim 3 --basis minmax" "lowrank --keep 0.5" "auto --dim 6 --qk-dim 3" "auto --keep 0.6" "qk --max-error 0.01"; do
    pare width m.st --data g.npz --method $how -q -f -o o.st | grep -E '^(cut|proven) |^ {13}.* -> ' | mask
    pare verify o.st.cert.json | grep -oE '^verdict +[A-Z]+'
done
# The certificate has its claims, and -v shows them with what each point cost.
pare width m.st --data g.npz --method qk --qk-dim 3 -q -v -f -o o.st | grep -E '^  (h0|layer 0)|^ +(theorem|evidence +layer 0)' | mask
pare width m.st --data g.npz --dim 8 -q --json -f -o o.st | python3 -c "
import json, sys
r = json.load(sys.stdin)
print(sorted(r))
print(r['cut'], r['certificate']['proven'] >= r['certificate']['measured'], r['metric']['name'])"
# What Shirzad 2024 prints of a theorem stands apart, and is compared again.
pare width m.st --data g.npz --method jl --qk-dim 3 -q -f -o o.st >/dev/null
python3 - <<'PY'
import json
c = json.load(open("o.st.cert.json"))
for p in c["paper"]: print(p["kind"], p["parameters"], p["sound"], p["sentence"])
c["paper"][1]["value"] = 1
json.dump(c, open("lie.cert.json", "w"))
PY
pare verify lie.cert.json 2>/dev/null | grep -oE '^verdict +[A-Z]+'
# Same command, same bytes, for any number of threads.
pare width m.st --data g.npz --method jl --qk-dim 3 -q -t 1 --seed 7 -o a.st >/dev/null
pare width m.st --data g.npz --method jl --qk-dim 3 -q -t 3 --seed 7 -o b.st >/dev/null
cmp a.st b.st && sed 's/a\.st/b.st/' a.st.cert.json | cmp - b.st.cert.json && echo same bytes
# After a fold the bound from norms is finite, and the two cuts compose.
pare fold m.st --data g.npz -q -o f.st >/dev/null
pare width f.st --data g.npz --method qk --qk-dim 4 -q -v -o c.st | grep -c 'a priori (all inputs of the domain) .*[0-9]$'
pare compose f.st.cert.json c.st.cert.json -q -o chain.cert.json >/dev/null && pare verify chain.cert.json | grep -oE '^verdict +[A-Z]+'
# The cut model is taught by its teacher; same bytes for any number of threads.
pare width m.st --data g.npz --dim 4 --distill 3 --distill-lr 0.01 -q -t 1 -o t1.st | grep '^distilled' | mask
pare width m.st --data g.npz --dim 4 --distill 3 --distill-lr 0.01 -q -t 3 -o t3.st >/dev/null
cmp t1.st t3.st && pare verify t1.st.cert.json | grep -oE '^verdict +[A-Z]+'
