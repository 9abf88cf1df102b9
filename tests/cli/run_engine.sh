# Packed weights and the int8 engine: the same text and nearly the same outputs, the same bits for any
# number of threads, and what is refused.
pare data model -q --kind llama -o m.st --dim 32 --heads 4 --layers 2 --context 32 --vocab 256 --seed 3
pare data random -q --count 6 --tokens 16 --vocab 256 -o t.npy
pare quant m.st --bits 8 --method rtn --prove 1 --tokens 2 -q -o q8.st > /dev/null
pare quant m.st --bits 4 --method rtn --prove 1 --tokens 2 -q -o q4.st > /dev/null
pare import q8.st -q -o plain.st > /dev/null
one() { pare run $1 --text "ab" --tokens 12 --temperature 0 -q "${@:2}" | od -An -tx1; }
# From the integers as they are, from the same numbers in f32, and in double precision's likeliest tokens.
[ "$(one q8.st)" = "$(one plain.st)" ] && echo same text from integers and from numbers
[ "$(one q8.st -t 1)" = "$(one q8.st -t 2)" ] && echo same text on two threads
for f in q8.st q4.st; do
    pare run $f --input t.npy --engine int8 -t 1 -q -f -o one.npy > /dev/null
    pare run $f --input t.npy --engine int8 -t 2 -q -f -o two.npy > /dev/null
    cmp one.npy two.npy && echo $f: same bits on two threads
    pare run $f --input t.npy -q -f -o f32.npy > /dev/null
    pare run $f --input t.npy --f64 -q -f -o f64.npy > /dev/null
    python3 - <<'END'
import struct
def read(path, kind):
    b = open(path, 'rb').read()
    at = 10 + struct.unpack('<H', b[8:10])[0]
    return [v for v, in struct.iter_unpack(kind, b[at:])]
exact = read('f64.npy', '<d')
norm = sum(v * v for v in exact) ** 0.5
def away(path):
    return sum((a - b) ** 2 for a, b in zip(exact, read(path, '<f'))) ** 0.5 / norm
print('f32 within 1e-6:', away('f32.npy') < 1e-6, ' int8 within 3 %, but not exact:', 1e-4 < away('one.npy') < 0.03)
END
done
# A score with the rounding in it.
pare eval q8.st --data t.npy -q | grep -oE '^(perplexity|time).*' | sed -E 's/[0-9]+\.[0-9]+/N/g'
pare eval q8.st --data t.npy --engine int8 -q | grep -oE '^(perplexity|time).*' | sed -E 's/[0-9]+\.[0-9]+/N/g'
# Half precision stays packed as well.
pare import m.st --dtype f16 -q -o half.st > /dev/null 2>&1 && [ "$(one half.st)" = "$(one m.st)" ] && echo half precision: same text
refuse() { pare "$@" 2>&1; echo "exit $?"; }
refuse run m.st --text a --engine int8
refuse run q8.st --text a --engine int4
refuse run q8.st --input t.npy --engine int8 --f64
refuse run q8.st --input t.npy --engine int8 --oracle 8
refuse eval q8.st --data t.npy --engine int8 --f64
refuse eval m.st --data t.npy --engine int8
# What the rounding has cost, proven after the fact: no less than what is seen, and hardly more.
pare run q8.st --input t.npy -q -f --json --distance > d32.json
pare run q8.st --input t.npy -q -f -o int8.npy --json --engine int8 --distance > d8.json
pare run q8.st --input t.npy --engine int8 --distance -q | grep -oE '^rounding .* exact function, proven' | sed -E 's/than [0-9.e-]+/than N/'
python3 - <<'END'
import json, struct
def read(path, kind):
    b = open(path, 'rb').read()
    at = 10 + struct.unpack('<H', b[8:10])[0]
    return [v for v, in struct.iter_unpack(kind, b[at:])]
d32, d8 = (json.load(open(f))['engine']['distance'] for f in ('d32.json', 'd8.json'))
import os
os.system('pare run q8.st --input t.npy --f64 -q -f -o f64.npy > log')
seen = max(abs(a - b) for a, b in zip(read('f64.npy', '<d'), read('int8.npy', '<f')))
print('int8:', seen <= d8 * (1 + 1e-9) and d8 <= 1.1 * seen, ' f32 is', 'nearer' if d32 < d8 / 100 else 'not nearer')
END
refuse run q8.st --input t.npy --distance --f64
