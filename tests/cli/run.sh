# One pass: every kind of input and the shape that comes out.
shape() { head -c 128 "$1" | tr -d '\0' | grep -ao "'descr.*}"; }
s='s/[0-9.]* ms/* ms/; s/from .* to .*/from * to */; s/, [0-9]* threads/, * threads/'
pare data model -q -o gpt.st --dim 16 --heads 2 --layers 1
pare data model -q -o bert.st --kind bert --dim 16 --heads 2 --layers 1
pare data model -q -o graph.st --kind graph --dim 16 --heads 2 --layers 1
pare data random -q -o batch.npy --count 3 --tokens 5
pare run gpt.st --input batch.npy -o y.npy 2>&1 | sed "$s"; shape y.npy
pare run gpt.st --input batch.npy -qf --f64 -o y.npy | sed "$s"; shape y.npy
pare run gpt.st --text hello -q -o y1.npy | sed "$s" | head -n 3; shape y1.npy
pare run gpt.st --text hello --tokens 0 | sed "$s" | grep -cE "^ +0\.[0-9]{6}     [0-9]+ +'.*'$"
printf hello | pare run gpt.st --text - -q -o y2.npy >/dev/null; cmp y1.npy y2.npy
pare run bert.st --text hello -q -o y.npy -f | sed "$s; s/0\.[0-9]*/p/"; shape y.npy
pare run bert.st --input batch.npy -q -o y.npy -f | sed -n 1p; shape y.npy
pare data minesweeper -q --side 5 -o g.npz
pare run graph.st --data g.npz -q -o y.npy -f | sed "$s"; shape y.npy
pare run graph.st --data g.npz -q -o - | cmp - y.npy
pare run graph.st --data g.npz --f64 --trace taps 2>&1 | sed "$s"
ls taps; shape taps/block0.attn_out.npy
pare run graph.st --data g.npz --trace taps; echo "exit $?"
pare run graph.st --data g.npz --trace taps -qf >/dev/null; echo "exit $?"
pare run gpt.st --input batch.npy --json | grep -oE '"(command|dtype)": "[A-Za-z0-9]*"|"shape": [^]]*]|"path": null|"run": '
pare run gpt.st --text hi --tokens 0 --json | grep -o '"probability"' | wc -l
# A model that overflows: everything is written, and stderr says so, also with -q.
pare data model -q -o wild.st --kind graph --dim 16 --heads 2 --layers 4 --sigma 1e6
pare run wild.st --data g.npz -qf -o y.npy 2>&1 >/dev/null | sed -E 's/[0-9]+ of [0-9]+|row [0-9]+|column [0-9]+/*/g'
echo "exit ${PIPESTATUS[0]}"; shape y.npy
pare run wild.st --data g.npz -q --json 2>/dev/null | grep -c '"nonfinite": [1-9]'
pare run graph.st --data g.npz -q --json | grep -c '"nonfinite": 0'
