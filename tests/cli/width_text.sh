# Language models and encoders made narrower without a graph: slice and svd, what a user sees.
. "$PARE_ROOT/tests/cli/digits.inc"
for i in $(seq 1 120); do echo "line $i says that $((i * i % 97)) is not $((i * 7 % 89))"; done > t.txt
pare data model -q --kind gpt -o g.st --dim 16 --layers 2 --heads 2 --context 32
pare data model -q --kind llama -o l.st --dim 16 --layers 2 --heads 4 --context 32
pare data model -q --kind bert -o b.st --dim 16 --layers 2 --heads 2 --context 32
pare data random -q --count 9 --tokens 12 --vocab 256 -o i.npy
mask() { sed -E 's/^(speed +).*/\1N/; s/^(ms[ a-z]*) .*/\1 N/; s/[0-9a-f]{12}\.\.\./H/' | digits; }
# A quarter of the text is held out: its loss is printed, and some of it is proven on.
pare width l.st --data t.txt --method slice --dim 12 -q -o o.st | mask
pare verify -v o.st.cert.json | grep -E '^(data|theorem|observation|verdict)|^ +on ' | mask
# One text, which the cut is fitted to: nothing is said of another.
head -c 20 t.txt >short.txt
pare width l.st --data short.txt --method svd --dim 12 -f -o s.st 2>&1 | grep -E '^(pare|new)|^ +(on|provided|at most) |new input' | mask
for how in "g.st --method slice --dim 12 --basis shared --windows 8 --fit-tokens 16" "g.st --method slice --keep 0.8 --untie" "l.st --method svd --keep 0.7" \
    "l.st --method svd --qk-dim 2 --v-dim 3 --ffn-dim 30" "g.st --method svd --dim 12 --ffn-dim 40"; do
    pare width $how --data t.txt -q -f -o o.st | grep -E '^(size|cut|proven) |^ {13}.* -> ' | mask
    pare verify o.st.cert.json | grep -oE '^verdict +[A-Z]+'
done
# After-norm models: ids from a file; without data there is nothing to slice, but svd needs none.
pare width b.st --data i.npy --method slice --dim 10 -q -f -o o.st | grep -E '^(quality|cut)|^ +on |^ {13}.* -> ' | mask
pare width b.st --method svd --dim 10 -q -f -o o.st | grep -E '^(quality|cut)|^ +on |^ {13}.* -> ' | mask
pare verify o.st.cert.json | grep -oE '^verdict +[A-Z]+'
pare width l.st --data t.txt --method slice --dim 12 -q -t 1 -o a.st >/dev/null
pare width l.st --data t.txt --method slice --dim 12 -q -t 3 -o c.st >/dev/null
cmp a.st c.st && sed 's/a\.st/c.st/' a.st.cert.json | cmp - c.st.cert.json && echo same bytes
# A cut model can be cut again, run, and its certificates do not say less than was proven.
pare width a.st --data t.txt --method slice --dim 10 -q -o again.st | grep -E '^(size|cut)|^ {13}.* -> '
pare run again.st --text "line 1 says" --tokens 3 -q >/dev/null && echo runs
no() { pare width "$@" -q -o n.st 2>&1; echo "exit $?"; ls n.st* 2>/dev/null; }
no g.st --method slice --dim 12
no g.st --method slice --data t.txt
no g.st --method slice --data t.txt --dim 17
no g.st --method slice --data t.txt --dim 12 --ffn-dim 3
no g.st --method svd --keep 0.001
no l.st --method svd --qk-dim 1
no g.st --method svd --dim 12 --basis minmax
no g.st --method slice --data missing.txt --dim 4
