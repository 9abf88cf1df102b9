# What a depth certificate says about every input near the given ones.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind bert --dim 16 --heads 2 -o m.st
pare data model -q --kind graph --classes 3 --dim 12 --heads 2 -o g.st
pare depth m.st --kind uniform --layers 0 --ball 1e-4 -q -o u.st | grep '^near' | digits
pare verify u.st.cert.json | tail -n 1
# The radius and the norm that are named are the ones that are proven.
sed 's/radius 0.0001 in/radius 0.5 in/' u.st.cert.json >wrong.cert.json
pare verify wrong.cert.json 2>/dev/null | tail -n 1
sed 's/in the euclidean norm/in every entry/' u.st.cert.json >wrong.cert.json
pare verify wrong.cert.json 2>/dev/null | tail -n 1
pare depth g.st --kind zero --layers 0 --ball 0.001 --ball-norm inf -q -o z.st | grep '^near' | digits
pare verify z.st.cert.json | tail -n 1
# What can not be asked.
pare depth m.st --kind uniform --layers 0 --ball -1 -q -o x.st
pare depth m.st --kind uniform --layers 0 --ball 1 --ball-norm 1 -q -o x.st
ls x.st* 2>/dev/null
