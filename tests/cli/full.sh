# A file that cannot grow (a full disk would say the same): exit 2 with its name, the old files as
# they were, nothing left over.
pare data model -q -o m.st --dim 16 --heads 2 --layers 2 --context 8
pare data model -q -o n.st --dim 16 --heads 2 --layers 2 --context 8 --seed 1
pare fold -q m.st -o o.st >/dev/null
sha256sum * >before
t() {
    echo "\$ pare $*"
    (ulimit -f 1 && exec pare "$@") 2>&1 >/dev/null | sed 's/part-[0-9]*/part-N/'
    echo "exit ${PIPESTATUS[0]}"
}
t data model -f -o o.st --dim 64 --layers 4
t import -f n.st -o o.st
t fold -f n.st -o o.st
t data minesweeper -f -o o.st --side 40
t data model -o new.st
sha256sum --quiet -c before
ls
echo '- standard output'
pare info m.st >/dev/full
echo "exit $?"
