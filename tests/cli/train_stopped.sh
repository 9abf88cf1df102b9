# Told to stop: the exit says so, the checkpoint stays, nothing temporary does, and --resume goes on.
exec 2>&1
pare data minesweeper --side 12 -q -o b.npz
words="--kind graph --data b.npz --dim 8 --layers 2 --epochs 3000 -t 1 -q --keep-every 1 -o o.st"
# A shell lets its background jobs ignore Ctrl-C; this puts that back before pare begins.
start='import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("pare", ["pare", "train"] + sys.argv[1:])'
stopped() { # signal
    python3 -c "$start" $words ${2:-} >out 2>err &
    for _ in $(seq 6000); do
        test -e o.st.checkpoint && break
        sleep 0.01
    done
    sleep 0.05
    kill -"$1" $!
    wait $! 2>wait
    echo "$1: exit $?"
    [ "$1" != INT ] || sed -E "s/step [0-9]+ of/step N of/" err # later ones may come before the first step
}
stopped INT
for s in TERM HUP; do stopped $s --resume; done
ls | grep -vE '^(b.npz|out|wait|err)$'
pare train $words >/dev/null
