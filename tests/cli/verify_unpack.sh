# pare verify --unpack: what a certificate is about in plain files, read again with numpy alone; nothing is proven.
. "$PARE_ROOT/tests/cli/unpacked.inc"
. "$PARE_ROOT/tests/cli/digits.inc"
exec 2>&1
# A graph: features, the test nodes, and the edges that the model adds (self loops, an expander).
pare data minesweeper --side 8 -q -o b.npz
pare train --kind graph --data b.npz --dim 8 --heads 2 --layers 1 --steps 2 --self-loops --expander 4 -q -o m.st >/dev/null
pare width m.st --data b.npz --dim 4 -q -o w.st >/dev/null
pare verify w.st --unpack graph
ls graph
check_unpacked w.st.cert.json graph
# Text: token ids in windows; sentences of different lengths.
for i in $(seq 1 60); do echo "line $i says that $((i * i % 97)) is not $((i * 7 % 89))"; done >t.txt
pare data model -q --kind llama -o l.st --dim 16 --layers 2 --heads 4 --context 40
pare width l.st --data t.txt --method svd --keep 0.8 -q -o s.st >/dev/null
pare verify s.st.cert.json --unpack text -q | head -n 1
check_unpacked s.st.cert.json text
printf '%s\n' '[PAD]' '[CLS]' '[SEP]' good bad not very so >words.txt
pare data model -q --kind bert -o b.st --dim 8 --layers 1 --heads 2 --context 12 --vocab 8
pare import b.st --vocab words.txt -q -o bw.st >/dev/null
{ printf 'sentence\tlabel\n'; for i in 1 2 3 4 5 6 7 8; do printf 'good%s\t%d\n' "$(yes ' very so' | head -n $((i % 4)) | tr -d '\n')" $((i % 2)); done; } >s.tsv
pare depth bw.st --data s.tsv --kind uniform --layers 0 -q -o u.st >/dev/null
pare verify u.st.cert.json --unpack sentences -q | head -n 1
check_unpacked u.st.cert.json sentences
# A ticket becomes numbers, a folder of Hugging Face a pare model; random inputs are written as well.
pare data model -q --kind gpt -o g.st --dim 16 --layers 1 --heads 2 --context 8 --vocab 20
pare ticket g.st --bits 9 -q -o g.ticket >/dev/null
pare verify g.ticket.cert.json --unpack ticket -q | head -n 1
check_unpacked g.ticket.cert.json ticket
pare export g.st -q -o hf >/dev/null
pare depth hf --kind uniform --layers 0 -q -o d.st >/dev/null
pare verify d.st --unpack folder --json -q
check_unpacked d.st.cert.json folder
# A chain: its ends, and every cut in a folder of its own.
pare fold m.st --data b.npz -q -o f.st >/dev/null
pare width f.st --data b.npz --method qk --qk-dim 2 -q -o k.st >/dev/null
pare compose f.st.cert.json k.st.cert.json -q -o c.cert.json >/dev/null
pare verify c.cert.json --unpack chain
check_unpacked c.cert.json chain
# A length run: what every head was asked and what it answered.
pare length g.st --tokens 8 --oracle 3 --certify -q -o p.json >/dev/null
pare verify p.json --unpack length
check_unpacked p.json.cert.json length
pare data random --vocab 20 --count 1 --tokens 8 -q -o i.npy
pare length g.st --data i.npy --oracle 3 --certify --rows 5 -q -o r.json >/dev/null
pare verify r.json --unpack length2 -q | head -n 1
check_unpacked r.json.cert.json length2
# The same bytes twice; -f replaces such a folder and no other.
pare verify w.st.cert.json --unpack again -q >/dev/null && diff -r graph again && echo "the same bytes"
no() { pare verify "$@"; echo "exit $?"; }
no w.st.cert.json --unpack again -q
echo x >>again/inputs.npz
pare verify w.st.cert.json --unpack again -q -f >/dev/null && diff -r graph again && echo "the same bytes"
mkdir mine && echo keep >mine/input.safetensors
no w.st.cert.json --unpack mine -q -f
cat mine/input.safetensors
no w.st.cert.json --unpack w.st -q -f
no w.st.cert.json --unpack nowhere/at/all -q
# Nothing is half-written: another model, other data, a file that is missing or no certificate.
gone() { no "$@" | sed -E 's/[0-9a-f]{12}\.\.\./H/g'; ls -d new 2>/dev/null; }
cp w.st.cert.json t.cert.json
gone t.cert.json --unpack new -q --output f.st
gone t.cert.json --unpack new -q --data t.txt
gone t.cert.json --unpack new -q --input none.st
gone m.st --unpack new -q
gone t.txt --unpack new -q
sed -i 's/"inputs_sha256": "./"inputs_sha256": "g/' t.cert.json
gone t.cert.json --unpack new -q
sed 's/\("inputs_sha256": ".*\)[0-9a-f][0-9a-f]"/\100"/' c.cert.json >t.cert.json
gone t.cert.json --unpack new -q --json
sed 's/"calls": [0-9]*/"calls": 1e99/' p.json.cert.json >t.cert.json
gone t.cert.json --unpack new -q
# Options that mean nothing.
no w.st.cert.json -f
no w.st.cert.json --unpack new --evidence
no w.st.cert.json --unpack new --backend cpu
no g.ticket.cert.json --unpack new --data t.txt -q
no w.st.cert.json --unpack ''
