# What a width certificate says beside its headline: balls, held-out inputs, what no cut can beat.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data minesweeper -q --side 8 --seed 9 -o fit.npz
mkdir boards
for i in 1 2 3; do pare data minesweeper -q --side 8 --seed $i -o boards/b$i.npz; done
pare data model -q --kind graph --classes 3 -o m.st --dim 12 --heads 2
# Figures of lowrank: auto chooses by differences in the last bits, which differ between CPUs.
# A share of the rows may be none, or not, by the roundings of the CPU.
mask() { sed -E 's/(may differ: at most ).*/\1N/' | digits; }
pare width m.st --data fit.npz --method lowrank --dim 6 --ball 1e-6 -q -v -o b.st | grep -E 'ball|layer by|best possible' | mask
pare verify b.st.cert.json | grep -oE '^verdict +[A-Z]+'
# The radius that is named is the one that is proven.
sed 's/"radius": 1e-06/"radius": 0.5/; s/of radius 1e-06 in/of radius 0.5 in/' b.st.cert.json >wrong.cert.json
pare verify wrong.cert.json 2>/dev/null | grep -oE '^verdict +[A-Z]+'
# Proven on inputs that the cut has not seen, it says something of the next one.
pare width m.st --data fit.npz --heldout boards --method lowrank --dim 6 -q -v -o h.st | grep -E '^new|^ +(on|provided|at most) |new input' | mask
pare verify h.st.cert.json | grep -oE '^verdict +[A-Z]+'
sed 's/"probability": 0.75/"probability": 0.8/' h.st.cert.json >wrong.cert.json
pare verify wrong.cert.json 2>/dev/null | grep -oE '^verdict +[A-Z]+'
# A promise decides by the held-out inputs whether anything is written: nothing is said of new ones.
pare width m.st --data fit.npz --heldout boards --max-error 9 --dim 6 -f -o h.st 2>&1 | grep -E '^new|^ +at most|no statement' | mask
grep -c 'new_input\|writers_word' h.st.cert.json
# One of the inputs that the cut is fitted to is among them: nothing is said.
cp -r boards some && cp fit.npz some/b4.npz
pare width m.st --data fit.npz --heldout some --dim 6 -o s.st 2>&1 | grep -E '^(pare|new)|^ +(on|provided|at most) |new input' | mask
pare verify s.st.cert.json | grep -oE '^verdict +[A-Z]+'
# Fewer numbers a row than outputs: no such model is nearer than this.
pare width m.st --data fit.npz --dim 2 -q -o l.st | grep 'least error' | mask
pare verify l.st.cert.json | grep -oE '^verdict +[A-Z]+'
# What can not be asked.
pare width m.st --data fit.npz --heldout boards --edits --dim 6 -q -o x.st
pare width m.st --data fit.npz --heldout nowhere --dim 6 -q -o x.st
mkdir none
pare width m.st --data fit.npz --heldout none --dim 6 -q -o x.st
pare width m.st --data fit.npz --prove 5 --dim 6 -q -o x.st
pare width m.st --data fit.npz --ball -1 --dim 6 -q -o x.st
ls x.st* 2>/dev/null
