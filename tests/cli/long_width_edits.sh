# All single-node edits of the real board: 60,000 of them, proven and proven again.
[ -n "$SHARED" ] || { echo "SKIP needs ../shared"; exit 77; }
pare width $SHARED/reference/width/out/teacher_s0.npz --data $SHARED/data/graph/minesweeper.npz --dim 8 --edits -q -o e.st | grep -A 2 '^edits' | sed -E 's/[0-9]+\.[0-9]+/N/g'
python3 -c "
import json
c = json.load(open('e.st.cert.json'))
b = {t['kind']: t['bound'] for t in c['theorems']}
print(c['headline']['proven'] < b['edits.outputs'] < 5, b['edits.rows_changed'] < 0.02)"
pare verify e.st.cert.json | grep -oE '^verdict +[A-Z]+'
