# What a depth certificate says about every input near the given ones.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind bert --dim 16 --heads 2 -o m.st
pare data model -q --kind graph --classes 3 --dim 12 --heads 2 -o g.st
pare depth m.st --kind uniform --layers 0 --ball 1e-4 -q -o u.st | grep -A 2 '^nearby' | digits
pare verify u.st.cert.json | grep -oE '^verdict +[A-Z]+'
# The radius and the norm that are named are the ones that are proven.
sed 's/radius 0.0001 in/radius 0.5 in/' u.st.cert.json >wrong.cert.json
pare verify wrong.cert.json 2>/dev/null | grep -oE '^verdict +[A-Z]+'
sed 's/in the euclidean norm/in every entry/' u.st.cert.json >wrong.cert.json
pare verify wrong.cert.json 2>/dev/null | grep -oE '^verdict +[A-Z]+'
pare depth g.st --kind zero --layers 0 --ball 0.001 --ball-norm inf -q -o z.st | grep -A 2 '^nearby' | digits
pare verify z.st.cert.json | grep -oE '^verdict +[A-Z]+'
# What can not be asked.
pare depth m.st --kind uniform --layers 0 --ball -1 -q -o x.st
pare depth m.st --kind uniform --layers 0 --ball 1 --ball-norm 1 -q -o x.st
ls x.st* 2>/dev/null
