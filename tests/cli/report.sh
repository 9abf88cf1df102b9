# One page from what the commands leave; other files are refused by name and nothing is written.
pare data model -q -o m.st --dim 16 --heads 2 --layers 2 --context 8
pare fold m.st -q -o f.st >/dev/null
pare probe m.st -q --no-cuts -o probe.json | head -n 1
pare report f.st.cert.json probe.json --verify -q -o page.html
grep -c '<section class="card"' page.html
grep -o 'class="chip good">verified' page.html | sort | uniq -c
# What the page is, what its words mean, the version, and the machine of the run file stand on top.
grep -oE '<dt>[a-zA-Z]+</dt>' page.html | tr '\n' ' '; echo
grep -oE 'Written by pare [0-9.]+. According to the run files, times were measured on ' page.html | sed 's/[0-9.]*[0-9]/N/'
# Parameters and bytes are counted in the verified models; times are the run file's word.
grep -oE '"dim small">(parameters|weights, bytes|file, bytes|time of one pass)</span><b>.*' page.html | sed 's/^"dim small">//' | sed -E 's/<[^>]*>/ /g; s/[0-9][0-9.,]*x?/N/g; s/ \((N (smaller|faster|slower)|the same)\)//; s/ *$//'
grep -o '<code>pare fold m.st -q -o f.st</code>' page.html
# The weights of a ticket are larger than its file once they are unpacked: the page says which is which.
pare ticket m.st --bits 6 -q -o t.ticket >/dev/null && pare report t.ticket.cert.json -q -o ticket.html
grep -oE '"dim small">(parameters|weights[a-z ]*, bytes)</span>' ticket.html
# The same bytes again; -f is asked for.
pare report f.st.cert.json probe.json --verify -q -o again.html >/dev/null && cmp page.html again.html && echo same
pare report f.st.cert.json -o page.html; echo "exit $?"
# A forged bound is on the page as what it is.
sed 's/"measured": [0-9.e-]*/"measured": 0.5/' f.st.cert.json >lie.cert.json
pare report lie.cert.json f.st.cert.json --verify -q -o lie.html >/dev/null
grep -o 'class="chip bad">refuted' lie.html | head -n 1
grep -oE '(<h2>|<a href="#box1">)[^<]*' lie.html
# Its card is open, has nothing green, no bar, and calls nothing proven.
sed -n '/<span class="kind">1 Fold/,/<\/section>/p' lie.html >card.html
grep -c '<details open>' card.html; grep -o 'It claims that' card.html
grep -cE 'chip good|class="tier|class="good"|Proven|[Cc]ertified' card.html
# A run file of other models: none of its figures.
cp f.st.cert.json other.cert.json
sed 's/"sha256": "...../"sha256": "00000/; s/"parameters": [0-9]*/"parameters": 1/' f.st.run.json >other.run.json
pare report other.cert.json -q -o other.html >/dev/null
grep -o 'other.run.json are not shown: its input model' other.html; grep -c '<span class="dim small">time of one pass' other.html
# What has no end is refused at once, whoever names it.
mkfifo pipe.json pipe.csv pipe.st.run.json; cp f.st.cert.json pipe.st.cert.json
for f in pipe.json pipe.csv pipe.st.cert.json /dev/zero; do timeout 60 pare report $f -q -o none.html 2>/dev/null; echo "$f: exit $?"; done
pare report f.st -o x.html; echo "exit $?"
pare report -o x.html; echo "exit $?"
# A run of small calls: its certificate, its calls as a picture; forged, it is not true.
pare length m.st --tokens 8 --oracle 4 --certify -q -o calls.json >/dev/null
sed 's/"proven": [0-9.e-]*/"proven": 1e-30/' calls.json.cert.json >false.cert.json
pare report calls.json.cert.json false.cert.json --verify -q -o calls.html
grep -oE 'class="chip (good|bad)">[a-z ]*|<svg class="plan"|(Made by|pare length)[^<]*' calls.html
# The calls of a plan have numbers, the picture has axes with names; no command is shown that was not recorded.
pare data model -q -o long.st --dim 16 --heads 2 --layers 1 --context 48
pare length long.st --tokens 48 --oracle 8 -q -o plan.json >/dev/null
pare report plan.json -q -o plan.html
grep -oE 'class="ink"[^>]*>[0-9]+<' plan.html | grep -oE '>[0-9]+' | tr -d '>\n'; echo; grep -oE '(query|key): [^<]*' plan.html; grep -c 'Made by' plan.html
# Files that only look like ours are refused by the key that is wrong.
echo '{"tables": 3}' >t.json; pare report t.json -q -o none.html 2>&1; echo "exit $?"
# Logits so large that a polynomial would need 4e17 features: a probe says so and goes on.
pare data minesweeper --side 16 --seed 1 -q -o board.npz >/dev/null
pare probe $PARE_ROOT/models/minesweeper.safetensors --data board.npz --no-cuts -q --json >large.json
grep -oE '"poly_features": *1\.[0-9]*e.17' large.json | cut -c 1-20
ls *.html
