# A changed certificate or file: exit 4 and the reason; an unreadable or missing one: exit 2.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q -o m.st --dim 16 --heads 2 --layers 1 --context 4
pare fold m.st -q -o f.st >/dev/null
c=f.st.cert.json
t() { # what, sed script
    sed -E "$2" $c >t.cert.json
    cmp -s $c t.cert.json && echo "$1: the script changed nothing"
    pare verify t.cert.json >out 2>err
    echo "$1: exit $?"
    sed -E '/^what to do/d; /^certificate/d; s/[0-9.]+e-[0-9]+|[0-9]+\.[0-9]+|[0-9a-f]{12}\.\.\./N/g; s/^/  /' out err
}
t proven 's/^(    "proven": ).*,/\11e-30,/'
t measured 's/^(    "measured": ).*,/\10,/'
t engine '/engine.distance/,/value/s/"value": .*,/"value": 1e-30,/'
t seed 's/^(    "seed": )"0"/\1"1"/'
t hypothesis '0,/"holds": true/s//"holds": false/'
t reduction 's/^(    "name": )"fold"/\1"fald"/'
t norm 's/^(    "norm": ".)/\1x/'
t domain 's/^(    "domain": ".)/\1x/'
t architecture '0,/"architecture": "./s//"architecture": "g/'
t architecture '0,/("architecture": ".*)[0-9a-f]"/s//\10"/; 0,/("architecture": ".*)[0-9a-f]0"/s//\11f"/'
t kind 's/"fold.same"/"fold.some"/'
t sentence 's/weights that folding had to round/weights that folding has rounded/'
t tolerance 's/"tolerance": 3/"tolerance": 30/'
t schema_1 's/^(  "pare": ).*/\11,/'
t version 's/^(  "pare": ).*/\199,/'
t truncated '10,$d'
t unknown_key 's/^(  "input")/  "imput": 1,\n\1/'
cp $c u.cert.json
cp f.st keep.st
printf X | dd of=f.st bs=1 seek=9000 conv=notrunc status=none
pare verify u.cert.json 2>&1 | sed -E 's/[0-9a-f]{12}\.\.\./N/g'; echo "exit ${PIPESTATUS[0]}"
pare verify u.cert.json -q --output keep.st | grep -oE '^verdict +[A-Z]+'
rm f.st
pare verify u.cert.json 2>&1; echo "exit $?"
pare verify none.cert.json 2>&1; echo "exit $?"
cp keep.st f.st
# A model: the certificate beside it is checked.
pare verify f.st 2>&1 | grep -E '^(pare|verdict|certificate)' | digits; echo "exit ${PIPESTATUS[0]}"
pare verify $c --data keep.st 2>&1 | head -n 1
pare verify m.st 2>&1; echo "exit ${PIPESTATUS[0]}"
cp keep.st f.st
sed -E 's/^(    "proven": ).*,/\11e-30,/' $c >t.cert.json
pare verify t.cert.json --json 2>/dev/null | grep -oE '"holds": false|"reason": "[a-z.]*: proven: the certificate claims 1e-30; [0-9.e-]* is the least that can be proven' | sed -E 's/; [0-9.e-]+/; N/'; echo "exit ${PIPESTATUS[0]}"
