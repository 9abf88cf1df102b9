# What exists is refused before any work is done; -f overwrites; an input is never overwritten.
exec 2>&1
t() { echo "\$ pare $*"; pare "$@" >out; echo "exit $?"; }
echo precious >x
pare data model -q -o m.st --dim 8 --heads 1 --layers 1 --context 4 --vocab 8
pare data random -q -o i.npy --count 1 --tokens 4 --vocab 8
cp m.st before.st
t data model -o x
t data sort -o x
t import missing.st -o x
t fold missing.st -o x
t run missing.st --text a -o x
t compose a.json b.json -o x
cat x
t import m.st -o ./m.st -f
t fold m.st -o m.st -f
t run m.st --input i.npy -o i.npy -f
t run m.st --input i.npy -o m.st -f
ln m.st link.st
t fold m.st -f -o link.st
t fold m.st --data i.npy -f -o i.npy
cmp m.st before.st
mkdir folder
t data model -o folder
t data model -o nowhere/m.st
t data model -o m.st/y
mkfifo pipe
t fold m.st -o pipe -f
t data model -o pipe -f
test -p pipe || echo "the pipe is gone"
t fold m.st -o -
t data model -o -
touch y.st.cert.json
t fold m.st -o y.st
rm y.st.cert.json && touch y.st.run.json
t fold m.st -o y.st
t fold m.st -qf -o y.st
t data model -qf -o x
ls | grep -v pipe
# A name that a command might use on its way is still the user's.
echo mine >z.st.unchecked
t import m.st -o z.st
cat z.st.unchecked
# Nor is what an option names: data, a plan; nor a model whose name a step of a plan would take.
pare length m.st --tokens 4 --oracle 2 -q -o p.json >/dev/null
t length m.st --data i.npy --oracle 2 -f -o i.npy
t probe m.st --data i.npy -f -o i.npy
t run m.st --input i.npy --plan p.json -f -o p.json
cp m.st s.st.step1
t plan s.st.step1 --max-error 1 -f -o s.st
cmp m.st s.st.step1
