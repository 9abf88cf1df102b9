# Help of every command: on stdout, exit 0, fits a screen, ends in an example, `help X` is the same.
check() { # words of the command
    pare "$@" --help >a 2>b || echo "$*: exit $?"
    [ ! -s b ] || echo "$*: something on stderr"
    [ "$(wc -l <a)" -le $(($# ? 24 : 30)) ] || # the list of all commands is longer
        echo "$*: $(wc -l <a) lines"
    awk -v name="$*" 'length > 100 { print name ": a line of " length }' a
    tail -n 3 a | grep -q "pare " || echo "$*: no example at the end"
    pare help "$@" | cmp - a
    pare "$@" --nonsense --help | cmp - a
}
for c in info probe run eval train fold width depth ticket length plan verify compose report import export data repro bench; do check $c; done
for k in mlp gcn gpt encoder; do pare train --kind $k --help >a && awk -v k=$k 'length > 100 { print k ": a line of " length }' a; done
for k in minesweeper angular sort random model; do check data $k; done
check
pare help help | cmp - a
pare help --help | cmp - a
pare version | cmp - <(pare --version)
pare -h
pare help fold
pare help train
pare data model --help
pare --version | grep -cE '^pare [0-9]+\.[0-9]+\.[0-9]+$'
