# Told to stop, or out of room: the exit says so and no temporary file stays behind.
exec 2>&1
pare data model -q -o m.st --dim 64 --layers 4
# A shell lets its background jobs ignore Ctrl-C; this puts that back before pare begins.
fold='import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("pare", ["pare", "fold", "m.st", "-o", "o.st", "-q"])'
ls -A >before
stopped() { # signal: fold until its model is there under its temporary name, then stop it
    python3 -c "$fold" >out &
    for _ in $(seq 6000); do
        test -e o.st.part-$! && break
        sleep 0.01
    done
    kill -"$1" $!
    wait $! 2>wait
    echo "$1: exit $?"
    rm -f out wait
}
for s in INT TERM HUP; do stopped $s; done
(ulimit -f 100; pare fold m.st -o o.st -q 2>&1; echo "exit $?") | sed -E 's/part-[0-9]+/part-N/'
(ulimit -f 100; pare data model -o o.st -q; echo "exit $?")
ls -A | grep -vx before | diff <(grep -vx before before) -
# What a killed process has left goes when the same output is written again; what is alive, or is no
# such file, stays.
touch o.st.part-999999999 o.st.cert.json.part-999999999.999999999-0.tmp o.st.part-$$ o.st.part-mine
pare fold m.st -o o.st -v 2>&1 >/dev/null | grep temporary
ls -A | grep part | sed "s/$$/ALIVE/"
