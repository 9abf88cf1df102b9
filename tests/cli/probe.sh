# pare probe: what a user sees of a graph transformer with data, without, and of a language model.
pare data minesweeper -q --side 12 -o g.npz
pare data model -q --kind graph -o m.st --dim 16 --heads 2
mask() { sed -E 's/[0-9]+\.[0-9]+(e[-+]?[0-9]+)?|[0-9]+e[-+]?[0-9]+|\binf\b/N/g; s/[▁▂▃▄▅▆▇█]+ *$/~/; s/ +/ /g'; }
echo "-- with data"
pare probe m.st --data g.npz -q >all
mask <all | grep -E '^(model|first|weights +block|operators|stream|vectors|scores|layers|theorems|cuts|not known)'
grep -cE '^  [01]\.[01] +W[qkvo] ' all
grep -cE '^  [hz][012] ' all
grep -E '^  (fails|holds)' all | sed -E 's/ by [^ ]*/ by N/; s/: [^:]*$//; s/ +/ /g' | cut -c1-90
grep -E '^  (none|exact|lowrank|leverage|cluster|jl|qk|auto) ' all | awk '{print $1, ($2 ~ /^[0-9]+$/ || $2 == "-") ? $2 : ""}'
echo "-- each direction"
sed -n '/^What/,/^Details/p' all | sed -E 's/([0-9.]+e-?[0-9]+|[0-9]+\.[0-9]+|\b[0-9]+\b)/N/g; s/ +/ /g' | cut -c1-110
echo "-- its attention"
mask <all | grep -E '^(attention|local|alone|curves|a priori|paper|depth +[cn])' | cut -c1-64
grep -cE '^  [01] +[01] ' all
grep -E '^  (zero|const|uniform|constq|linear|affmix|pool) +1:' all | awk '{print $1}'
pare probe m.st --data g.npz -q --part width | grep -cE '^(attention|curves)'
pare probe m.st --data g.npz -q --part depth | grep -cE '^(theorems|cuts)'
echo "-- as work for small engines"
mask <all | grep -E '^(length +[0-9]|modes|logits|types|sampling)'
grep -cE '^ +(16|32|64|128) ' all
pare probe m.st --data g.npz -q --part length | grep -cE '^(attention|curves|tickets|cuts)'
pare data model -q --kind gpt -o p.st --dim 16 --heads 2 --context 100
pare probe p.st -q --part length | sed -n '/^length  *yes/p; /^length  *[0-9]/,$p' | cut -c1-100
echo "-- without"
pare probe m.st -q | grep '^not known'
echo "-- the same for any number of threads"
pare probe m.st --data g.npz -q -t 1 --json | sed 's/"threads": *1, *"line": *"[^"]*"/T/' >a.json
pare probe m.st --data g.npz -q -t 3 --json | sed 's/"threads": *3, *"line": *"[^"]*"/T/' >b.json
cmp a.json b.json && echo same bytes
echo "-- a language model"
pare data model -q --kind llama -o l.st --dim 16 --heads 2
pare data random -q -o t.npy --vocab 256
pare probe l.st --data t.npy -q | grep -E '^(stream|not known +leverage)' | sed -E 's/ +/ /g'
echo "-- JSON"
pare probe m.st --data g.npz --dims 4 -q --json | python3 -c "
import json, sys
r = json.load(sys.stdin)
p = r['probe']
print(sorted(r)); print(sorted(p)); print(sorted(p['depth'])); print(sorted(p['length'])); print(sorted(p['survey']))
print(all(w['norm'] == w['singular_values'][0] for w in p['weights']), [c['method'] for c in p['cuts']][:7])
print([d['direction'] for d in p['directions']], all(d['measured'] is None or d['measured'] <= d['proven'] for d in p['directions']))"
echo "-- refused"
exec 2>&1
for w in "none.st" "m.st --data none.npz" "m.st --data g.npz --split 99" "l.st --data g.npz" "m.st --data g.npz --dims 0" "m.st --data g.npz --dims 4,x" "m.st --data g.npz --dims -4" "m.st --data g.npz --dims ," "m.st --dims 4" "m.st --data g.npz --tokens 3" "m.st --data g.npz --part length --dims 3" "m.st --tokens 0" "m.st --part x" "" "m.st more"; do
    pare probe $w -q >out; echo "exit $?"
    [ ! -s out ] || echo "something on stdout"
done
