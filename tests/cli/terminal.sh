# On a terminal: colors unless NO_COLOR, never a binary array.
command -v script >/dev/null || { echo "SKIP needs script"; exit 77; }
tty() { script -qec "$1" /dev/null </dev/null | tr -d '\r'; }
tty 'test -t 1 && echo terminal' | grep -q terminal || { echo "SKIP no terminal"; exit 77; }
pare data model -q -o m.st --dim 8 --heads 1 --layers 1 --context 4 --vocab 8
pare fold m.st -q -o f.st >/dev/null
esc=$(printf '\033')
export TERM=xterm
tty 'unset NO_COLOR; pare verify -q f.st.cert.json' | grep -c "${esc}\[32mHOLDS"
tty 'NO_COLOR=1 pare verify -q f.st.cert.json' | grep -c "$esc"
tty 'unset NO_COLOR; TERM=dumb pare verify -q f.st.cert.json' | grep -c "$esc"
pare verify -q f.st.cert.json | grep -c "$esc"
pare data random -q -o x.npy --count 1 --tokens 4 --vocab 8
tty 'pare run m.st --input x.npy -o -; echo exit $?'
pare data minesweeper --side 8 -q -o b.npz
tty 'pare train --kind graph --data b.npz --dim 4 --layers 1 --epochs 4000 -o t.st' | tr '\r' '\n' >seen
grep -qE 'training \[#+\.*\] +[0-9]+% eta [0-9:-]+  loss [0-9.e-]+  auc 0\.[0-9]+' seen && echo progress
tty 'stty cols 30; pare train --kind graph --data b.npz --dim 4 --layers 1 --epochs 40 -f -o t.st' | sed "s/$esc\[K/\n/g" |
    awk '/^training/ { n++; if (length > 29) wide++ } END { print (n ? "drawn" : "not drawn"), wide + 0, "wrap" }'
tty 'pare train --kind graph --data b.npz --dim 4 --layers 1 --epochs 40 -q -f -o t.st' | grep -c eta
tty 'pare repro all --only tables,calls --side 6 --large 1 --runs 1 --epochs 3 -t 2 -o r' | tr '\r' '\n' >seen
grep -qE 'repro all \[#*\.*\] +[0-9]+% eta [0-9:-]+' seen && echo progress
grep -oE 'of them were there already' seen
# One bar a command: from 0 to 100 %, never back.
bars() {
    sed "s/$esc\[K/\n/g" | grep -oE '\] +[0-9]+%' | tr -dc '0-9\n' |
        awk 'NR == 1 { first = $1 } $1 < last { back++ } { last = $1 } END { print first " to " last " %, back " back + 0 " times" }'
}
pare data model --kind graph --dim 8 --heads 1 --layers 2 -q -o g.st
tty 'pare width g.st --data b.npz --dim 4 -o w.st' | bars
tty 'pare verify w.st.cert.json' | bars
tty 'pare depth m.st --kind uniform --layers 0 -f -o d.st' | bars
tty 'pare ticket m.st --bits 6 -f -o k.st' | bars
