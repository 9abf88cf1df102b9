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
