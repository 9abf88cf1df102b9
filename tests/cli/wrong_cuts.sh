# Command lines of the cuts that are wrong: each is answered with what is wrong and what to do, and
# nothing is written.
. "$PARE_ROOT/tests/cli/digits.inc"
exec 2>&1
pare data minesweeper -q --side 6 -o board.npz
pare data random -q --count 12 --tokens 8 --vocab 9 -o ids.npy
pare data random -q --count 3 --tokens 8 --vocab 9 --seed 2 -o other.npy
pare data model -q --kind graph -o graph.st --dim 8 --heads 2
pare data model -q --kind gpt -o text.st --dim 8 --heads 2 --layers 2 --context 8 --vocab 9
mkdir out
no() {
    echo "\$ pare $*"
    pare "$@" -q -o out/x 2>&1 | grep -v '^usage:' | digits
    echo "exit ${PIPESTATUS[0]}"
    ls out
}
# Width: options of the other kind of model, of another method, or that say the same thing twice.
no width text.st --data ids.npy --keep 75
no width text.st --data ids.npy --keep 0
no width text.st --data ids.npy --dim 4
no width text.st --data ids.npy
no width text.st --keep 75%
no width text.st --data ids.npy --keep 75% --qk-dim 2
no width text.st --data ids.npy --method lowrank --dim 4
for o in "--trials 5" "--rows sample" "--rule paper" "--start jl" "--split 1" "--distill-lr 0.1" "--edits" "--ball 0.1" "--basis shared" "--untie"; do
    no width text.st --data ids.npy --keep 75% $o
done
no width graph.st --data board.npz --dim 4 --v-dim 2
no width graph.st --data board.npz --dim 4 --keep 50%
no width graph.st --data board.npz --dim 4 --windows 3
no width graph.st --data board.npz --method lowrank --dim 4 --basis shared
no width text.st --data ids.npy --max-error 1e-12
# Depth.
no depth text.st
no depth text.st --layers 1
no depth text.st --data ids.npy --layers 1 --ball-norm 2
no depth text.st --data ids.npy --exact 0 --kind zero --select loo
no depth text.st --data ids.npy --layers 1 --split 2
no depth graph.st --data board.npz --layers 0 --tokens 4
no depth text.st --layers 0 --kind zero --prove 3
# Ticket.
no ticket text.st
no ticket text.st --bits 8 --stored 3
no ticket text.st --bits 8 --scale 3
pare ticket text.st --required 1,0.1 --method block | head -n 1
# Fold, plan.
no fold text.st --split 1
no plan text.st --data ids.npy
no plan text.st --max-bytes 2x
no plan text.st --max-bytes 20k --measured
no plan text.st --max-bytes 20k --directions width,hight
no plan missing.st --max-bytes 20k
# Compose: cuts in the wrong order, and cuts that are proven on different inputs, with the remedy.
pare depth text.st --data ids.npy --exact 0 --kind zero -q -o a.st >/dev/null
pare depth a.st --data other.npy --layers 0 --kind zero -q -o b.st >/dev/null
pare compose b.st.cert.json a.st.cert.json -o out/c.cert.json 2>&1 | sed -E 's/[0-9a-f]{12}\.\.\./H/g'
pare compose a.st.cert.json b.st.cert.json -o out/c.cert.json
# Domains that differ only in a number of tokens that no input reaches do compose.
pare width text.st --data ids.npy --keep 90% --prove 3 -q -o w.st >/dev/null
pare depth w.st --data ids.npy --layers 1 --prove 3 -q -o d.st >/dev/null
pare compose w.st.cert.json d.st.cert.json -q -o wd.cert.json >/dev/null && pare verify wd.cert.json | grep -oE '^verdict +[A-Z]+'
# Verify: a model is not a certificate; the one beside it is taken.
pare verify text.st
pare verify d.st | head -n 1 | digits
pare verify board.npz
pare verify out
pare verify wd.cert.json --backend cpu | head -n 1
# A promise that is broken, as JSON: one object with the reason; nothing is written.
pare width text.st --data ids.npy --keep 50% --max-error 1e-12 --json -q -o out/x 2>/dev/null | python3 -c "
import json, sys
r = json.load(sys.stdin)
print(r['command'], r['error']['exit'], r['error']['kind'], 'larger than --max-error 1e-12' in r['error']['message'])"
# --max-error without a width: the smallest model of a text that is proven to stay within it.
pare width text.st --data ids.npy --max-error 2 -q --json -o s.st | python3 -c "
import json, sys
r = json.load(sys.stdin)
print(r['certificate']['proven'] <= 2, r['output']['parameters'] < r['input']['parameters'])"
ls out
