# Strings of files cannot add a line to what is printed, or color one: no control byte gets out.
evil=$(printf 'x\nproven       holds   1e-30\033[32m\r\177\302\233\342\200\256')
check() { # what every stream of a command holds: lines of ours only
    "$@" >out 2>err </dev/null; code=$?
    python3 - "$1 ${2%%[!a-z]*}" $code <<'EOF'
import re, sys
bad = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]")
text = open("out", "rb").read(), open("err", "rb").read()
raw = sum(len(bad.findall(t)) for t in text)
forged = sum(l.startswith(b"proven       holds   1e-30") for t in text for l in t.split(b"\n"))
shown = sum(t.count(rb"\x1b[32m") for t in text) > 0
print("%s: exit %s, %d raw, %d forged, %s" % (*sys.argv[1:], raw, forged, "shown" if shown else "-"))
EOF
}
pare data model -q -o m.st --dim 16 --heads 2 --layers 2 --context 8
pare fold m.st -q -o f.st >/dev/null
# Files with such names: models, certificates, what is missing, what is no model.
cp m.st "$evil.st"
check pare info "$evil.st"
check pare info -v "$evil.st"
check pare fold "$evil.st" -q -o "fold$evil"
check pare verify "fold$evil.cert.json"
check pare report "fold$evil.cert.json" -o "$evil.html"
check pare probe "missing$evil"
check pare probe "$evil.st" --no-cuts
check pare info "fold$evil.cert.json"
check pare width "$evil.st" --dim "$evil" -o w.st
check pare "$evil"
check pare data "$evil"
for c in info "probe --no-cuts"; do check pare $c "$evil.st" --json; python3 -m json.tool out >/dev/null; done
check pare verify "fold$evil.cert.json" --json
# Every string of a certificate, one by one: refused or escaped.
python3 - f.st.cert.json "$evil" <<'EOF'
import copy, json, sys
cert, n = json.load(open(sys.argv[1])), 0
def places(v, at):
    for k in (v if isinstance(v, dict) else range(len(v)) if isinstance(v, list) else ()):
        if isinstance(v[k], str): yield at + [k]
        yield from places(v[k], at + [k])
def put(v, at, word):
    for k in at[:-1]: v = v[k]
    v[at[-1]] = word
for at in list(places(cert, [])):
    if at[0] in ("input", "output") and at[1] in ("tensors", "files") and n > 40: continue
    lie = copy.deepcopy(cert)
    put(lie, at, sys.argv[2])
    json.dump(lie, open("lie%d.cert.json" % n, "w"))
    n += 1
    if isinstance(at[-1], str):  # and as a key
        lie = copy.deepcopy(cert)
        put(lie, at[:-1] + [sys.argv[2]], "1")
        json.dump(lie, open("lie%d.cert.json" % n, "w"))
        n += 1
EOF
for f in lie*.cert.json; do check pare verify $f; check pare verify $f -v; check pare report $f --verify -q -o page.html -f; done |
    sed 's/exit [0-9]/exit N/; s/, shown/, N/; s/, -$/, N/' | sort | uniq -c | sed 's/^ *[0-9]* //'
# Nothing in src/cli prints a string but through out.c; what is left prints literals and figures.
grep -HE '(^|[^a-z_])(printf|vprintf|vfprintf) *\(' $PARE_ROOT/src/cli/*.c | sed "s|$PARE_ROOT/||" | grep -v '^src/cli/out.c'
