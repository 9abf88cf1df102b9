# The number of threads changes no byte of anything.
both() { # file made, words of the command
    local f=$1
    shift
    pare "$@" -q -t 1 -o 1/$f >/dev/null && pare "$@" -q -t 2 -o 2/$f >/dev/null && cmp 1/$f 2/$f
}
mkdir 1 2
for k in gpt llama bert graph; do
    both $k.st data model --kind $k --dim 48 --heads 3 --layers 2 --context 40
    case $k in
    graph) pare data minesweeper -qf --side 9 -o d.npz && in="--data d.npz" ;;
    *) pare data random -qf --count 2 --tokens 40 -o d.npy && in="--input d.npy" ;;
    esac
    both $k.32.npy run 1/$k.st $in
    both $k.64.npy run 1/$k.st $in --f64
done
pare data model -q -o m.st --dim 16 --heads 2 --layers 1 --context 6
for t in 1 2; do (cd $t && pare fold ../m.st -q -t $t -o f.st >/dev/null); done
cmp 1/f.st 2/f.st && cmp 1/f.st.cert.json 2/f.st.cert.json && echo same
