# Inputs that do not fit are refused with the reason, exit 2; nothing is written.
exec 2>&1
t() { echo "\$ pare $*"; pare "$@"; echo "exit $?"; }
pare data model -q -o gpt.st --dim 16 --heads 2 --layers 1 --context 4
pare data model -q -o words.st --dim 16 --heads 2 --layers 1 --vocab 9
pare data model -q -o graph.st --kind graph --dim 16 --heads 2 --layers 1
pare data random -q -o big.npy --count 1 --tokens 5
pare data random -q -o high.npy --count 1 --tokens 3 --vocab 5000
pare data random -q -o vec.npy --count 1 --tokens 3 --vocab 0 --width 16
pare data minesweeper -q --side 4 -o g.npz
pare data sort -q -o sort.npz
t run missing.st --text a
t run gpt.st --input missing.npy
t run gpt.st --input big.npy -o y.npy
t run gpt.st --input high.npy -o y.npy
t run gpt.st --input vec.npy -o y.npy
t run gpt.st --text 'too long'
t run words.st --text word
t run gpt.st --input g.npz
t run graph.st --text a
t run graph.st --data sort.npz
t run gpt.st --data g.npz
t run gpt.st --text a -o - --json
ls *.npy
