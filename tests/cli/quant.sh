# Weights as integers with scales: what is stored, its certificate, what is refused.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind gpt -o m.st --dim 16 --heads 2 --layers 2 --context 12 --vocab 60
pare data random -q --count 40 --tokens 12 --vocab 60 -o t.npy
mask() { sed -E 's/^(speed +).*/\1N/; s/^(ms[ a-z]*) .*/\1 N/' | digits; }
verdict() { pare verify -q $1 | grep -oE '^verdict +[A-Z]+'; }
pare quant m.st --bits 4 --data t.npy -q -o q4.st | mask
verdict q4.st
pare info q4.st | grep -E '^(file|parameters)'
# The same bytes for any number of threads, another group another file; every command reads it.
pare quant m.st --bits 4 --data t.npy -t 1 -q -o one.st >/dev/null; cmp q4.st one.st && echo same bytes
pare quant m.st --bits 4 --group 8 --data t.npy -q -o g8.st >/dev/null; cmp -s q4.st g8.st || echo other bytes
pare import q4.st -q -o plain.st | tail -n 1
pare run q4.st --input t.npy -q -o a.npy >/dev/null && pare run plain.st --input t.npy -q -o b.npy >/dev/null && cmp a.npy b.npy && echo same outputs
# Every number of bits, symmetric and affine, by both methods, one scale for a whole row.
for how in "--bits 8" "--bits 5 --affine" "--bits 3 --method rtn" "--bits 2 --group 0 --affine --method rtn" "--bits 2 --embedding-bits 8" "--bits 6 --group 1000000" "--bits 4 --dtype f16"; do
    pare quant m.st $how --data t.npy -q -f -o o.st | sed -nE 's/^(cut  +| {13})(.*(stored|take)[^(]*)/\2/p' | mask
    verdict o.st
done
# By bytes: promised and written; by a proven bound.
for b in 10k 11k 12000 14.5k; do
    pare quant m.st --max-bytes $b --data t.npy -q -f -o o.st >/dev/null
    [ $(stat -c %s o.st) -le $(echo $b | sed 's/14.5k/14500/; s/k/000/') ] && [ $(stat -c %s o.st) -ge $(($(echo $b | sed 's/14.5k/14500/; s/k/000/') - 200)) ] && echo "$b bytes: kept and used"
done
verdict o.st
pare quant m.st --bits 3 --max-bytes 11k --data t.npy -q -v -f -o o.st | awk '$3 ~ /^[0-9]+$/ && NF >= 5 && $3 > 3 { print "more than 3 bits" }'
pare quant m.st --max-error 0.5 --data t.npy -f -o o.st --json 2>note | python3 -c "
import json, sys
o = json.load(sys.stdin)
print(o['command'], o['certificate']['proven'] <= 0.5, o['quant']['method'], 3 < o['quant']['bits'] < 8, sorted(o['quant']), sorted(o['quant']['matrices'][0]))"
sed -E 's/[0-9]+/N/g' note
# What is refused, with nothing written.
rm o.st*
refuse() { pare quant "$@" -q 2>&1; echo $?; }
refuse m.st --bits 1 -o o.st
refuse m.st --bits 9 -o o.st
refuse m.st --bits 4.5 -o o.st
refuse m.st --bits many -o o.st
refuse m.st --bits 4
refuse m.st --bits 4 --method best -o o.st
refuse m.st --max-bytes 10k --max-error 1 -o o.st
refuse m.st --max-bytes 5k --data t.npy -o o.st
refuse m.st --max-error 1e-6 --data t.npy -o o.st
refuse m.st --bits 2 --max-error 1e-6 --data t.npy -o o.st | mask
refuse none.st --bits 4 -o o.st
refuse m.st --bits 4 --data none.npy -o o.st
refuse m.st --bits 4 --data q4.st -o o.st
refuse m.st --bits 4 -o q4.st
refuse m.st --bits 4 -o folder/
refuse m.st --bits 4 --split 2 -o o.st
refuse q4.st --bits 8 -o o.st
ls o.st* folder 2>/dev/null
# A quantized file that was changed names file and tensor; so does a certificate that says more.
python3 - <<'PY'
data = bytearray(open("q4.st", "rb").read())
at = data.rindex(b"PARETKT1")
for name, where, what in (("magic", 0, 1), ("version", 7, 8), ("kind", 8, 8), ("body", 60, 255)):
    bad = bytearray(data); bad[at + where] ^= what
    open(name + ".st", "wb").write(bad)
PY
for bad in magic version kind body; do pare info $bad.st 2>&1 | sed -E 's/[0-9a-f]{8}/X/g'; done
pare verify q4.st.cert.json --output body.st 2>&1 | sed -E 's/[0-9a-f]{8}/X/g' | head -n 1
pare verify q4.st.cert.json --output g8.st -q 2>&1 | sed -nE 's/[0-9a-f]{12}\.\.\./N/g; 1p'; echo "exit ${PIPESTATUS[0]}"
for field in 'proven": ' 'measured": '; do
    sed -E "s/^(    \"$field)[^,]*,/\11e-09,/" q4.st.cert.json >less.cert.json
    pare verify less.cert.json -q 2>&1 | grep -vE '^(what to do|certificate)' | head -n 1 | mask; echo "exit ${PIPESTATUS[0]}"
done
# A classifier keeps its labels, an embedding its cosines, a node its class.
pare data model -q --kind bert -o b.st --dim 16 --heads 2 --layers 1 --context 12 --vocab 60
pare quant b.st --bits 6 --data t.npy -q -o bq.st | grep -E 'label|cosine|neighbor' | mask
verdict bq.st
pare data minesweeper -q --side 8 -o a.npz; pare data model -q --kind graph -o g.st --dim 16 --heads 2 --layers 2
pare quant g.st --bits 5 --data a.npz -q -o gq.st | grep -E 'class|^quality' | mask
verdict gq.st
