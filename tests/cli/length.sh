# Plans: what a run of N tokens costs on an engine of M, from sizes alone.
pare data model -q --kind gpt -o m.st --dim 16 --heads 2 --layers 2 --context 64
plan() { pare length m.st "$@" | grep -v '^time'; }
plan --tokens 4096 --oracle 128 --dry-run
plan --tokens 4096 --oracle 128 --mode zeroref --dry-run
plan --tokens 4096 --oracle 128 --mode zeroref --mask full --dry-run
plan --tokens 100 --oracle 128 --mode zeroref --dry-run
plan --tokens 0 --oracle 8 --dry-run
plan --tokens 1024 --oracle 64 -o p.json >/dev/null
sed -n 1,12p p.json
ls p.json*
# What is refused: a reason, an exit code, and no file.
no() { pare length "$@" -q -o o.json 2>&1; echo "exit $?"; ls o.json* 2>/dev/null; }
no m.st --tokens 10
no m.st --oracle 0
no m.st --oracle 8,2
no m.st --oracle 8,x,1
no m.st --oracle 1 --mode zeroref
no missing.st --oracle 8
pare length m.st --oracle 8 2>&1; echo "exit $?"
pare data model -q --kind graph -o g.st
no g.st --oracle 8
true
# A run with its certificate, proven again on another engine; and one that was changed.
cert() { pare length m.st --tokens 60 -q -f -o q.json "$@" --certify | grep -c 'proven\|measured'; }
cert --oracle 16
pare verify q.json.cert.json | sed -E 's/[0-9a-f]{12}\.\.\./H/; s/[0-9.]+e?-?[0-9]*( in f64|$)/N\1/'; echo "exit ${PIPESTATUS[0]}"
cert --oracle 16,2,3 --mode strict
pare verify q.json.cert.json >/dev/null; echo "exit $?"
sed -i 's/"proven": [0-9.e-]*/"proven": 1e-12/' q.json.cert.json
pare verify q.json.cert.json 2>/dev/null; echo "exit $?"
cert --oracle 16 --mode zeroref
sed -i 's/"tokens": 60/"tokens": 61/' q.json
pare verify q.json.cert.json 2>&1 | sed -E 's/[0-9a-f]{12}\.\.\./H/g'; echo "exit ${PIPESTATUS[0]}"
true
