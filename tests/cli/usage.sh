# Complaints name the word, say one line of usage, and exit 1.
exec 2>&1
t() { echo "\$ pare $*"; pare "$@"; echo "exit $?"; }
pare >out 2>err; echo "exit $?, $(wc -l <out) lines out"; head -n 1 err
t frobnicate
t help frobnicate
t info
t info a b
t info --frob m
t info -x m
t info -qz m
t info m --tokens
t info m --tokens 0
t info m --tokens 12x
t info m --tokens=-3
t info m --tokens 99999999999999999999999
t info m -t 0
t info m -t
t info m --json=yes
t info m --seed 1.5
t fold m
t fold m -o --json
t fold m -o x --max-error nan
t fold m -o x --max-error ' 1'
t fold m -o x --max-error ''
t data
t data frob
t data sort --side 3 -o x
t data model --kind frob -o x
t data model --dim 10 --heads 4 -o x
t data model --kind llama --dim 6 --heads 2 -o x
t run m
t run m --text a --input b
t eval m
t compose a -o b
t verify
ls
