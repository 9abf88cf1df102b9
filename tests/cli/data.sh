# Each kind of data: same seed, same bytes; another seed, other bytes.
make() { # name, words of the command
    local name=$1
    shift
    pare data "$@" -o a.$name && pare data "$@" -o b.$name && pare data "$@" --seed 1 -o c.$name
    cmp a.$name b.$name
    cmp -s a.$name c.$name && echo "$name: the seed changes nothing"
    return 0
}
exec 2>&1
make npz minesweeper --side 5
make ang.npz angular --count 3 --tokens 4
make sort.npz sort --count 3 --length 4 --symbols 5
make npy random --count 2 --tokens 3
make vec.npy random --count 2 --tokens 3 --vocab 0 --width 4
for k in gpt llama bert graph; do make $k.st model --kind $k --dim 8 --heads 2 --layers 1; done
pare data model --kind gpt --dim 8 --heads 2 --layers 1 --sigma 0.02 -q -o small.st
pare data model --json -q -o j.st | sed -E 's/[0-9a-f]{64}/HASH/; s/"threads": [0-9]+/"threads": N/'
head -c 128 a.npy | tr -d '\0' | grep -ao "'descr.*}"
head -c 128 a.vec.npy | tr -d '\0' | grep -ao "'descr.*}"
