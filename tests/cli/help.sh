# Help of every command: on stdout, exit 0, 80 columns, ends in two examples, `help X` is the same.
# Every option has an explanation, every default is shown, and --help all knows at least as much.
check() { # words of the command
    pare "$@" --help >a 2>b || echo "$*: exit $?"
    [ ! -s b ] || echo "$*: something on stderr"
    [ "$(wc -l <a)" -le 60 ] || echo "$*: $(wc -l <a) lines"
    # a usage line or an example may be longer: it is there to be copied
    awk -v name="$*" 'length > 80 && !/^(Usage:|  pare )/ { print name ": a line of " length ": " $0 }' a
    [ "$(sed -n '/^Examples$/,$p' a | grep -c '^  pare ')" -ge 2 ] || echo "$*: fewer than two examples"
    pare help "$@" | cmp - a
    pare "$@" --nonsense --help | cmp - a
    pare "$@" --help all >all || echo "$* --help all: exit $?"
    pare help "$@" all | cmp - all
    awk -v name="$*" 'length > 80 && !/^(Usage:|  pare )/ { print name " --help all: a line of " length }' all
    grep -oE '^  (-[a-z], )?--[a-z0-9-]+' a | sort >some
    grep -oE '^  (-[a-z], )?--[a-z0-9-]+' all | sort >every
    comm -23 some every
}
for c in info probe run eval train fold width depth ticket length plan verify compose report import export data repro bench; do check $c; done
for k in graph mlp gcn gpt encoder; do pare train --kind $k --help all >a || echo "train --kind $k: exit $?"; done
for k in minesweeper angular sort random model; do check data $k; done
check
pare help help | cmp - <(pare --help)
pare help --help | cmp - <(pare --help)
pare version | cmp - <(pare --version)
pare -h
pare help fold
pare --version | grep -cE '^pare [0-9]+\.[0-9]+\.[0-9]+$'
