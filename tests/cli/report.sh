# One page from what the commands leave; other files are refused by name and nothing is written.
pare data model -q -o m.st --dim 16 --heads 2 --layers 2 --context 8
pare fold m.st -q -o f.st >/dev/null
pare probe m.st -q --no-cuts -o probe.json | head -n 1
pare report f.st.cert.json probe.json --verify -q -o page.html
grep -c '<section' page.html
grep -o 'class="chip good">verified' page.html
grep -o '<code>pare fold m.st -q -o f.st</code>' page.html
# The same bytes again; -f is asked for.
pare report f.st.cert.json probe.json --verify -q -o again.html >/dev/null && cmp page.html again.html && echo same
pare report f.st.cert.json -o page.html; echo "exit $?"
# A forged bound is on the page as what it is.
sed 's/"measured": [0-9.e-]*/"measured": 0.5/' f.st.cert.json >lie.cert.json
pare report lie.cert.json --verify -q -o lie.html >/dev/null
grep -o 'class="chip bad">not true' lie.html | head -n 1
pare report f.st -o x.html; echo "exit $?"
pare report -o x.html; echo "exit $?"
# A run of small calls: its certificate, its calls as a picture; forged, it is not true.
pare length m.st --tokens 8 --oracle 4 --certify -q -o calls.json >/dev/null
sed 's/"proven": [0-9.e-]*/"proven": 1e-30/' calls.json.cert.json >false.cert.json
pare report calls.json.cert.json false.cert.json --verify -q -o calls.html
grep -oE 'class="chip (good|bad)">[a-z ]*|<svg class="plan"|pare length m.st [^<]*' calls.html
# Logits so large that a polynomial would need 4e17 features: a probe says so and goes on.
pare data minesweeper --side 16 --seed 1 -q -o board.npz >/dev/null
pare probe $PARE_ROOT/models/minesweeper.safetensors --data board.npz --no-cuts -q --json >large.json
grep -oE '"poly_features": *1\.[0-9]*e.17' large.json | cut -c 1-20
ls *.html
