# A model as a seed and masks: every command reads it, its certificate verifies, it expands.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind gpt -o m.st --dim 16 --heads 2 --layers 1 --context 12 --vocab 40
pare data random -q --count 12 --tokens 12 --vocab 40 -o t.npy
mask() { sed -E 's/^(speed +).*/\1N/; s/^(ms[ a-z]*) .*/\1 N/' | digits; }
pare ticket m.st --bits 14 --data t.npy -q -o m.ticket | mask
pare verify m.ticket.cert.json | grep -oE '^verdict +[A-Z]+'
pare info m.ticket | grep -E '^(file|parameters)'
pare import m.ticket -q -o plain.st | tail -n 1
pare run m.ticket --input t.npy -q -o a.npy >/dev/null && pare run plain.st --input t.npy -q -o b.npy >/dev/null && cmp a.npy b.npy && echo same outputs
[ $(stat -c %s m.ticket) -lt $(stat -c %s plain.st) ] && echo smaller
# The same bytes on one thread and on two, another seed another ticket.
pare ticket m.st --bits 6 -t 1 -q -o one.ticket >/dev/null && pare ticket m.st --bits 6 -t 2 -q -o two.ticket >/dev/null
cmp one.ticket two.ticket && echo same ticket
pare ticket m.st --bits 6 --seed 1 -q -o three.ticket >/dev/null; cmp -s one.ticket three.ticket || echo other ticket
# Modes, methods, codings; a ticket is cut again like any model.
for how in "--mode merged" "--mode factored" "--method block" "--coding raw" "--strict" "--scale 0.5" "--method feedback" "--method feedback --data t.npy" "--method feedback --stored 4 --data t.npy"; do
    pare ticket m.st --bits 8 $how -q -f -o o.ticket | grep -E '^(cut|proven) |^ {13}.* -> ' | mask
    pare verify o.ticket.cert.json | grep -oE '^verdict +[A-Z]+'
done
pare depth m.ticket --kind uniform --layers 0 -q -o flat.st | grep '^cut'
pare compose m.ticket.cert.json flat.st.cert.json -q -o chain.json >/dev/null 2>&1 || echo other inputs: no chain
# Stored bits are what was asked for, but for a tenth; all threads make the same bytes.
pare ticket m.st --method feedback --stored 5 --data t.npy -t 1 -q -o one.5.ticket | awk '/ bits a weight, / && $1 > 4.5 && $1 < 5.5 { print "about five bits" } /same error feedback/ { print "rounding with it beside" }'
pare ticket m.st --method feedback --stored 5 --data t.npy -t 3 -q -o two.5.ticket >/dev/null; cmp one.5.ticket two.5.ticket && echo same ticket
# By hidden units, or by a promise about the proven bound.
pare ticket m.st --hidden 160 -q -f -o o.ticket | grep '^cut'
pare ticket m.st --max-error 0.3 -q -f --json -o o.ticket | python3 -c "
import json, sys
o = json.load(sys.stdin)
print(o['command'], o['certificate']['proven'] <= 0.3, 4 < o['ticket']['bits'] < 20, sorted(o['ticket']), sorted(o['rounded']))"
# What is refused, with nothing written.
rm o.ticket*
pare ticket m.st -o o.ticket; echo $?
pare ticket m.st --bits 8 --hidden 64 -o o.ticket; echo $?
pare ticket m.st --bits 8 --scale 0.3 -o o.ticket; echo $?
pare ticket m.st --bits 8 --scale 0.00000095367431640625 -o o.ticket; echo $?
pare ticket m.st --hidden 9 -o o.ticket; echo $?
pare ticket m.st --bits 8 --stored 4 -o o.ticket; echo $?
pare ticket m.st --bits 30 --stored 4 --method feedback -o o.ticket; echo $?
pare ticket m.st --bits 24 --stored 24 --method feedback -o o.ticket; echo $?
pare ticket m.st --bits 2 --max-error 1e-6 -q -o o.ticket; echo $?
pare data model -q --kind llama -o l.st --dim 16 --heads 2 --layers 1 --context 12 --vocab 40
pare ticket l.st --bits 8 --mode merged -o o.ticket; echo $?
ls o.ticket* 2>/dev/null
# A ticket that was changed names file and tensor.
python3 - <<'PY'
data = bytearray(open("m.ticket", "rb").read())
at = data.rindex(b"PARETKT1")
for name, where, what in (("magic", 0, 1), ("version", 7, 8), ("body", 60, 255)):
    bad = bytearray(data); bad[at + where] ^= what
    open(name + ".ticket", "wb").write(bad)
PY
for bad in magic version body; do pare info $bad.ticket 2>&1 | sed -E 's/[0-9a-f]{8}/X/g'; done
