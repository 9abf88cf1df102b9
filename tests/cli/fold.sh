# Fold writes model, certificate and times; the three tiers are told together and in order.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q -o m.st --dim 16 --heads 2 --layers 2 --context 8
mask() { sed -E 's/^(speed +).*/\1N/; s/^(ms[ a-z]*) .*/\1 N/; s/[0-9a-f]{12}\.\.\./H/' | digits; }
pare fold m.st -o f.st | mask
ls
echo
pare verify f.st.cert.json | mask
echo
# The certificate knows no time; the run file does.
grep -ciE 'time|threads|host' f.st.cert.json
tr -d ' \n' <f.st.run.json | sed -E 's/[0-9a-f]{64}/H/g; s/"(version|cpu)":"[^"]*"/"\1":"X"/g; s/[0-9.]*[0-9],/N,/g; s/[0-9.]*[0-9]}/N}/g'; echo
pare fold m.st -qf -o f.st --json | grep -oE '"[a-z0-9_]+":' | sort | uniq -c | awk '{ print $2 }' | tr -d '\n'; echo
# Folding again finds nothing to do, and both cuts compose.
pare fold f.st -q -o g.st | grep '^cut'
pare compose f.st.cert.json g.st.cert.json -o fg.cert.json | mask
pare verify fg.cert.json | grep -oE '^verdict +[A-Z]+'
# A folded model is an ordinary one.
pare run m.st --text abc -q -o a.npy | head -n 1
pare run f.st --text abc -q -o b.npy | head -n 1
pare info f.st | grep blocks
