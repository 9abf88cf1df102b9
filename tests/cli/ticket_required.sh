# How wide a random network must be (Otsuka 2025, Theorems 3 and 6): printed, nothing written.
. "$PARE_ROOT/tests/cli/pure_net.inc"
exec 2>&1
t() { echo "\$ pare ticket $*"; pare ticket "$@"; echo "exit $?"; }
# One head on rows of two numbers, G = diag(.5, .25), V = diag(.25, -.5), rows of length 1: the numbers
# are those of tests/ticket/test_required_units.c, the_plan_of_a_model_is_the_formula_by_hand.
pure_net two.st 2 1 none .5,.25/1,1/.25,-.5
python3 - <<'PY'
import struct
head = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 2), }"
head += " " * (63 - (len(head) + 10) % 64) + "\n"
open("x.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<4d", 1, 0, 0, -1))
PY
t two.st --required 0.1,0.01 --data x.npy
pare ticket two.st --required 0.1,0.01 --data x.npy --json | python3 -c "
import json, math, sys
r = json.load(sys.stdin)['required']
print(sorted(r), sorted(r['layers'][0]), sorted(r['layers'][0]['n_k']), sorted(r['blocks']))
k, v = r['layers'][0]['n_k'], r['layers'][0]['n_v']
print(k['proven'], k['products'], v['proven'], v['products'])
for got, want in ((k['eta'], .05), (v['eta'], .025), (k['printed_c1'], 2 * math.log(8 * 2 ** 1.5 / .1)),
                  (v['printed_c1'], 2 * math.log(4 * 2 ** .5 / .1)), (k['least'], math.log2(10)), (v['least'], math.log2(20))):
    print(abs(got - want) < 1e-6)"
# Larger entries of a trained kind of net, several layers; the last is below what the generator can promise.
pare data model --kind graph --dim 8 --heads 2 --layers 2 --no-norms --no-biases -q -o net.st
pare data minesweeper --side 6 -q -o g.npz
t net.st --required 1,0.05 --data g.npz
# Which hypothesis fails, layer by layer, or of the whole model.
pare data model --kind gpt --dim 8 --heads 2 --layers 1 --context 8 --vocab 20 -q -o gpt.st
pare data model --kind llama --dim 8 --heads 2 --layers 1 --context 8 --vocab 20 -q -o llama.st
for m in gpt llama; do pare ticket $m.st --required 1,0.1 | grep -E '^(domain|  layer)'; done
pare depth gpt.st --kind uniform --layers 0 -q -o flat.st >/dev/null
t flat.st --required 1,0.1
# What is refused.
for pair in 0.1 0.1, ,0.1 0,0.1 -1,0.1 nan,0.1 inf,0.1 0.1,0 0.1,1 0.1,nan 0.1,0.1,0.1 a,b; do
    pare ticket two.st --required=$pair 2>&1 | head -n 1
done
t two.st --required 0.1,0.1 --bits 4
t two.st --required 0.1,0.1 -o o.ticket
t none.st --required 0.1,0.1
t two.st --bits 4
ls
