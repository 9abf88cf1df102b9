# Command lines that a new user got wrong with 0.1: each answers what is wrong and what to do, and
# leaves nothing behind.
exec 2>&1
ls >before
t() { echo "\$ pare $*"; pare "$@"; echo "exit $?"; }
pare data sort --count 8 --length 6 --symbols 3 -q -o sort.npz
pare data minesweeper --side 6 -q -o board.npz
pare data model --dim 16 --heads 2 --context 11 -q -o m.st
models=$PARE_ROOT/models
cp $models/sort.safetensors sort.st
cp $models/minesweeper.safetensors mines.st
ls >before
t widht m.st
t width m.st --kep 0.5
t data cats -o x
t bench nothing
t repro lenght
t width sort.st --data sort.npz --dim 24 -o x
t width sort.st --data sort.npz --keep 75 -o x
t width sort.st --data sort.npz --keep 0 -o x
t width sort.st --data sort.npz -o x
for o in '--trials 3' '--rows sample' '--rule paper' '--start jl' '--split 1' '--distill-lr 0.1'; do t width sort.st --data sort.npz --keep 75% $o -o x; done
t depth sort.st --layers 1 -o x
t depth sort.st --data sort.npz --layers 1 --ball-norm inf -o x
t length m.st --tokens 4096 --oracle 4 -o x
t plan sort.st --data sort.npz --max-bytes 200q -o x
t ticket m.st --bits 4.5 -o x
t verify sort.st
t verify missing.cert.json
t fold missing.st -o m.st
t info m.st --seed 3
t repro errata --side 9
echo '{"tables": 3}' >tables.json
t report tables.json -o x
rm tables.json
ls | diff before - && echo nothing was left behind
