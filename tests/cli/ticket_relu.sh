# Feed-forward parts with ReLU come from a ReLU source in merged mode; the file is read back, proven
# again, expanded; other activations stay factored, and that is said.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind graph -o r.st --dim 4 --heads 2 --layers 2 --ffn 3
pare data model -q --kind gpt -o g.st --dim 8 --heads 2 --layers 1 --context 8 --vocab 20
for how in "--bits 8 --biases -t 1" "--hidden 60 --method block"; do
    pare ticket r.st --mode merged --allow-larger $how -q -f -o r.ticket | grep -E '^(cut|proven) |ReLU' | digits
    pare verify -v r.ticket.cert.json | sed -nE 's/.*(layer [01]: error that the ticket of the .* adds.*)/\1/p; /^verdict/p' | digits
    mv r.ticket last.ticket
done
pare import last.ticket -q -o plain.st | tail -n 1
pare ticket g.st --mode merged --bits 8 -q -o g.ticket | grep -E '^cut |ReLU'
pare ticket r.st --mode merged --allow-larger --max-error 2 --biases -t 4 -q -f --json -o r.ticket | python3 -c "
import json, sys
o = json.load(sys.stdin)
print(o['certificate']['proven'] <= 2, o['ticket']['mode'], o['ticket']['relu_parts'], 2 < o['ticket']['bits'] < 20)"
# Too few units, by name; strict and out of reach is a warning, and a ticket all the same.
pare ticket r.st --mode merged --hidden 6 -q -o o.ticket; echo $?
pare ticket r.st --mode merged --allow-larger --bits 2 --strict -o s.ticket 2>&1 >/dev/null | grep -o 'matrices have weights that the random products cannot reach'; ls s.ticket
# A changed byte, a certificate that says less than was proven.
python3 - <<'PY'
import json
data = bytearray(open("r.ticket", "rb").read())
at = data.index(b"PARETKT1\x04")
data[at + 70] ^= 1
open("bad.ticket", "wb").write(data)
c = json.load(open("r.ticket.cert.json"))
for s in c["theorems"]:
    if s["sentence"] == "layer 1: error that the ticket of the feed-forward part adds": s["bound"] *= .9
json.dump(c, open("less.cert.json", "w"))
PY
pare info bad.ticket 2>&1 | sed -E 's/[0-9a-f]{8}/X/g'
pare verify less.cert.json 2>/dev/null | grep -o 'layer.ticket (.*): the certificate claims'; pare verify less.cert.json -q >/dev/null 2>&1; echo $?
