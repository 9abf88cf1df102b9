# tools/bench, the script behind `make bench`: one CSV on stdout and in out/bench.csv, whole or not at
# all; lines of the programs of bench/ are comments; a peer that is absent is named with its package.
mkdir -p tools bench build/bench
cp "$PARE_ROOT/tools/bench" tools/
program() { # name, what it does
    touch bench/$1.c
    printf '#!/bin/sh\n%s\n' "$2" >build/bench/$1 && chmod +x build/bench/$1
}
export BUILD=build
program linalg 'echo "gemm 1 2 3"; echo "svd 4"'

echo '- names'
ln -s "$PARE_BUILD/pare" build/pare
tools/bench --quick --alone hash dense -t 1 >a.csv && cmp a.csv out/bench.csv && ls out
grep -v '^#' a.csv | cut -d, -f1-3
tools/bench --table | sed -E 's/[0-9]+\.[0-9]+/X/g'
tools/bench --quick --alone nothing 2>/dev/null
echo "exit $?" && cmp a.csv out/bench.csv && ls out

echo '- programs' # and a command that says how it was called
rm build/pare
printf '#!/bin/sh\necho "pare $*"\n' >build/pare && chmod +x build/pare
tools/bench --alone -t 1 && tools/bench --short --alone && tools/bench --quick --alone && tools/bench --alone hash
program broken 'echo half; exit 3'
tools/bench --alone
echo "exit $?" && cat out/bench.csv && ls out
printf '#!/bin/sh\necho "half a table"; exit 4\n' >build/pare
tools/bench --alone hash
echo "exit $?" && cat out/bench.csv && ls out

echo '- no peers'
sed -i 's|^python=/usr/bin/python3|python=nosuchpython|; s/|| python=python3$/|| true/' tools/bench
tools/bench hash 2>&1 >/dev/null; true
