# Plans: what a run of N tokens costs on an engine of M, from sizes alone.
pare data model -q --kind gpt -o m.st --dim 16 --heads 2 --layers 2 --context 64
pare data model -q --kind gpt -o long.st --dim 16 --heads 2 --layers 2 --context 4096
plan() { pare length long.st "$@" | grep -v '^time'; }
plan --tokens 4096 --oracle 128 --dry-run
plan --tokens 4096 --oracle 128 --dry-run -v | grep -E '^(flops|weights)|closed form|partial results'
plan --tokens 4096 --oracle 128 --mode zeroref --dry-run
plan --tokens 4096 --oracle 128 --mode zeroref --mask full --dry-run
plan --tokens 100 --oracle 128 --mode zeroref --dry-run
plan --tokens 0 --oracle 8 --dry-run
plan --tokens 1024 --oracle 64 -o p.json >/dev/null
sed -n 1,12p p.json
grep '"d_' p.json
for w in "64 --mode zeroref --static" "64 --mode strict" "64,2,3 --mode strict" "64 --mode paper"; do plan --tokens 1024 --oracle $w --dry-run -v | grep -A1 'call size'; done
ls p.json*
# What is refused: a reason, an exit code, and no file.
no() { pare length "$@" -q -o o.json 2>&1; echo "exit $?"; ls o.json* 2>/dev/null; }
no m.st --tokens 10
no m.st --oracle 0
no m.st --oracle 8,2
no m.st --oracle 8,x,1
no m.st --oracle 1 --mode zeroref
no missing.st --oracle 8
# More calls than can be counted in a minute or so, and too many tokens: refused at once.
pare data model -q --kind llama -o l.st --dim 16 --heads 2 --layers 2 --context 64
no l.st --tokens 100000000 --oracle 8
no l.st --tokens 100000000 --oracle 64 --mode zeroref
no l.st --tokens 1000000000 --oracle 64 --mode sample
# More tokens than learned positions: the plan could not run, so there is none.
no m.st --tokens 65 --oracle 8
no m.st --tokens 65 --oracle 8 --certify
pare length m.st --oracle 8 --dry-run | grep '^plan'
# Without learned positions inputs may be longer than the context.
pare length l.st --tokens 4096 --oracle 8 --dry-run | grep '^plan'
pare length m.st --oracle 8 2>&1; echo "exit $?"
no m.st --oracle 8 --dry-run
pare data model -q --kind graph -o g.st
no g.st --oracle 8
no m.st --oracle 8 --one-vector --mode native
no m.st --oracle 8 --one-vector --mode zeroref
true
# A run with its certificate, proven again on another engine; and one that was changed.
cert() { pare length m.st --tokens 60 -q -f -o q.json "$@" --certify | grep -c 'proven\|measured'; }
cert --oracle 16
pare verify q.json.cert.json | sed -E 's/[0-9a-f]{12}\.\.\./H/; s/[0-9.]+e?-?[0-9]*$/N/'; echo "exit ${PIPESTATUS[0]}"
pare length m.st --tokens 60 -q -f -o q.json --oracle 16 --certify | sed -n 's/.*by more than \([^ ]*\) .*/\1/p' >bound
pare verify q.json.cert.json | sed -n 's/.*by more than //p' | cmp - bound && echo "one bound in both"
cert --oracle 16,2,3 --mode strict
pare verify q.json.cert.json >/dev/null; echo "exit $?"
sed -i 's/"proven": [0-9.e-]*/"proven": 1e-12/' q.json.cert.json
pare verify q.json.cert.json 2>/dev/null; echo "exit $?"
cert --oracle 16 --mode zeroref
sed -i 's/"tokens": 60/"tokens": 61/' q.json
pare verify q.json.cert.json 2>&1 | sed -E 's/[0-9a-f]{12}\.\.\./H/g'; echo "exit ${PIPESTATUS[0]}"
# Over a graph: the plan is the graph's, and so is its certificate.
pare data minesweeper -q --side 6 -o board.npz
pare data model -q -f --kind graph -o g.st --dim 8 --heads 2 --layers 1
for w in "--mode native" "--mode zeroref --mask full" "--mode zeroref --mask causal" "--mode strict"; do
    pare length g.st --data board.npz --oracle 8 $w -f -q -o g.json --certify | grep -c '^plan *36 \|measured'
    pare verify g.json.cert.json | sed -E 's/[0-9a-f]{12}\.\.\./H/; s/[0-9.]+e?-?[0-9]*$/N/' | grep -E 'data|other engine'
done
cp board.npz other.npz; printf x >>other.npz
pare verify g.json.cert.json --data other.npz 2>&1 | sed -E 's/[0-9a-f]{12}\.\.\./H/g'
pare run g.st --data board.npz --plan g.json --backend paper -q -f -o y.npy | grep engine
pare data minesweeper -q --side 5 -o small.npz
pare run g.st --data small.npz --plan g.json --backend paper -q -f -o y.npy 2>&1; echo "exit $?"
# A saved plan on engines of one's own, and proven on them.
pare length m.st --tokens 60 --oracle 16 --mode zeroref --certify -q -f -o q.json >/dev/null
pare data random -q --count 1 --tokens 60 -o x.npy
cc -O1 -o attention $PARE_ROOT/examples/pipe/attention.c -lm
pare run m.st --input x.npy --plan q.json -q -f -o y.npy | grep engine
pare run m.st --input x.npy --plan q.json --backend pipe:./attention -q -f -o z.npy | grep engine
for b in paper pipe:./attention "pipe:/usr/bin/python3 $PARE_ROOT/tests/peers/faulty.py nan 2>/dev/null" gpu; do
    pare verify q.json.cert.json --backend "$b" 2>&1 | sed -E 's/[0-9.]+e-[0-9]+/N/; s|/[^ ]*/||g' | grep -E 'other engine|pare'
    echo "exit ${PIPESTATUS[0]}"
done
pare run m.st --input x.npy --plan q.json --oracle 8 2>&1 | head -1
pare run m.st --input x.npy --plan missing.json 2>&1; echo "exit $?"
echo '{"pare_plan": 1, "oracle": {"length": 0}}' >bad.json
pare run m.st --input x.npy --plan bad.json 2>&1; echo "exit $?"
true
