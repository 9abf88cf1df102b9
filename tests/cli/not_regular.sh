# Pipes, sockets and devices in the place of a model, a certificate, data or a report's file: exit 2
# at once, nothing is waited for, nothing is written.
exec 2>&1
pare data model -q -o m.st --dim 8 --heads 2 --layers 1 --kind graph
pare data minesweeper -q -o b.npz --side 8
pare data model -q -o gpt.st --dim 8 --heads 2 --layers 1 --context 8 --vocab 256
pare fold m.st -q -o f.st --data b.npz >/dev/null
pare verify f.st.cert.json -q >/dev/null && echo "holds"
ls >before
mkfifo pipe pipe.npz pipe.txt pipe.csv pipe.npy
at_once() {
    timeout 60 pare "$@" </dev/null >said 2>&1
    echo "$1: exit $?, $(grep -o '[^ ]* is not a regular file ([a-z ]*)' said)"
}
for f in pipe /dev/zero /dev/null; do
    at_once info $f
    at_once run $f --data b.npz
    at_once fold $f -o x.st
    at_once verify $f
    at_once report $f -o x.html
    at_once verify f.st.cert.json --input $f
    at_once verify f.st.cert.json --output $f
    at_once verify f.st.cert.json --data $f
done
at_once report pipe.csv -o x.html
at_once fold m.st -o x.st --data pipe.npz
at_once eval gpt.st --data pipe.txt
at_once run m.st --input pipe.npy
at_once import gpt.st -o x.st --vocab pipe
at_once verify f.st.cert.json --data pipe.npz
at_once compose pipe f.st.cert.json -o x.cert.json
# Links to regular files are regular files; what stdin is redirected from is one too.
ln -s m.st link && pare info link | head -n 1
pare info /dev/stdin <m.st | head -n 1
rm pipe* link said
ls | grep -vx before | diff <(grep -vx before before) - && echo "nothing was written"
