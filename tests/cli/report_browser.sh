# The report as a reader sees it, at 1400 and 390 pixels, in light and in dark: no table clipped without a
# sign, no words of a picture on top of one another, no page that scrolls sideways.
command -v chromium >/dev/null || { echo "SKIP needs chromium"; exit 77; }
look() { python3 $PARE_ROOT/tests/report/browser.py "$@"; }
pare data minesweeper --side 16 --seed 1 -q -o board.npz >/dev/null
model=$PARE_ROOT/models/minesweeper.safetensors
pare width $model --data board.npz --dim 8 -q -o small.st >/dev/null
pare width $model --data board.npz --method qk --qk-dim 8 -q -o qk.st >/dev/null
pare probe $model --data board.npz --dims 8 -q --json >probe.json
pare train --kind graph --data board.npz --dim 8 --layers 1 --epochs 10 -q -o gt.st --log gt.csv >/dev/null
pare length $PARE_ROOT/models/sort.safetensors --tokens 11 --oracle 2 --certify -q -o calls.json >/dev/null
sed 's/"proven": [0-9.e-]*/"proven": 1e-9/' small.st.cert.json >lie.cert.json
pare report small.st.cert.json qk.st.cert.json calls.json.cert.json lie.cert.json probe.json gt.csv --verify -q -o page.html
look page.html .
# One certificate alone, and one that is refuted.
pare report small.st.cert.json -q -o one.html && look one.html . bars
pare report lie.cert.json --verify -q -o lie.html && look lie.html . cards
# An accuracy or an area ends at 1, and no axis is called "largest" or "metric".
grep -cE '<text[^>]*>(largest|metric)<' page.html
# Each defect, planted into a copy of the page, is seen.
sed 's/<main>/<main><div style="width:2000px">x<\/div>/' page.html >bad.html; look bad.html . once | grep -o 'the page is [0-9]* wide'
sed 's/class="hint need[0-9]*"/class="hint"/; s/table.heat{width:auto/table.heat{width:3000px/' page.html >bad.html; look bad.html . once | grep -o 'clipped without a hint: div.wide' | head -n 1
sed 's/\.wide{overflow-x:auto}/.wide{overflow-x:hidden}/; s/table.heat{width:auto/table.heat{width:3000px/' page.html >bad.html; look bad.html . once | grep -o 'clipped: div.wide' | head -n 1
sed 's/table{border-collapse:collapse;width:100%/table{border-collapse:collapse;width:1300px/' page.html >bad.html; look bad.html . once | grep -o 'sticks out: table.rows all' | head -n 1
sed 's/<svg class="plot"[^>]*>/&<text x="2" y="12">planted<\/text>/' page.html >bad.html; look bad.html . once | grep -o 'overlap: planted' | head -n 1
sed 's/<svg class="plot"[^>]*>/&<text x="370" y="100">planted<\/text>/' page.html >bad.html; look bad.html . once | grep -o 'leaves its picture: planted' | head -n 1
sed 's/<path[^>]*>//g' page.html >bad.html; look bad.html . once | grep -o 'empty plot' | head -n 1
sed 's/--dim:#5c6675/--dim:#b0b8c4/' page.html >bad.html; look bad.html . once | grep -o 'contrast [0-9.]*' | head -n 1
sed 's/id="box2"/id="box99"/' page.html >bad.html; look bad.html . once | grep -o 'no #box2' | head -n 1
