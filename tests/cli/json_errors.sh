# With --json every exit code writes one object to stdout, errors included; words stay on stderr.
show() {
    pare "$@" --json >out 2>err
    echo "exit $?, stderr $([ -s err ] && echo says why || echo is empty)"
    python3 - <<'END'
import json
text = open("out").read()
assert text.count("\n") == 1, text
o = json.loads(text)
e = o.get("error")
print(" ", o.get("command"), e and (e["exit"], e["kind"], e["message"]), o.get("holds", ""), o.get("reason", ""))
END
}
show
show widht
show data cats
show info
show info --tokns 3 m
show fold missing.st -o x
pare data model --dim 16 --heads 2 --context 8 -q -o m.st
echo garbage >garbage.st
show info garbage.st
show fold m.st -o m.st
show fold m.st --max-error 1e-30 -o s.st
ls s.st* 2>/dev/null
show fold m.st -o s.st | sed 's/None//'
show verify s.st.cert.json
sed -i 's/"proven": [0-9.e-]*/"proven": 1e-12/' s.st.cert.json
show verify s.st.cert.json | sed -E 's/[0-9.]+e-0[0-9]+$/BOUND/'
