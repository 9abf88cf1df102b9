# Held-out inputs say something of inputs that are not there yet: one more, and all of them.
pare data model -q --kind gpt -o m.st --dim 8 --heads 2 --layers 1 --context 4 --vocab 9
pare data random -q --count 39 --tokens 4 --vocab 9 -o t.npy
mask() { sed -E 's/^(new input +)[0-9.e-]+/\1N/; s/: [0-9.]+(e-[0-9]+)?$/: N/'; }
pare depth m.st --data t.npy --kind uniform --layers 0 -q -o o.st | grep '^new' | mask
pare depth m.st --data t.npy --kind uniform --layers 0 --exceed 0.1 --confidence 0.99 -q -f -o o.st | grep '^new' | mask
pare verify o.st.cert.json | grep -E 'new|verdict' | mask
pare report o.st.cert.json -q -o page.html >/dev/null && grep -o 'new inputs with larger errors, confidence 0.99' page.html
# The larger the errors that are left out, the smaller the bound.
/usr/bin/env python3 - <<'PY'
import json
s = {x['name']: x for x in json.load(open('o.st.cert.json'))['statements']}
one, few = s['a new input of the same source'], s['a new input of the same source, largest errors left out: 3']
print(few['bound'] < one['bound'], round(1 - one['probability'], 4), round(1 - few['probability'], 4))
PY
# Whatever is made better than it is, is found out.
tamper() {
    /usr/bin/env python3 - "$@" <<'PY'
import json, sys
part, key, by = sys.argv[1:]
c = json.load(open('o.st.cert.json'))
s = [x for x in c['statements'] if part in x['name']][-1]
s[key] = s[key].replace(*by.split('->')) if '->' in by else s[key] * float(by)
json.dump(c, open('wrong.cert.json', 'w'))
PY
    pare verify wrong.cert.json >/dev/null 2>&1
    echo "exit $?: $1, $2 $3"
}
tamper 'larger errors' bound 0.999
tamper 'larger errors' probability 1.001
tamper 'larger errors' name '0.99->0.999'
tamper 'larger errors' name 'out: 3->out: 4'
tamper 'larger errors' name 'confidence 0.99->confidence 2'
tamper 'a new input' bound 0.999
tamper 'a new input' probability 1.001
tamper 'a new input' name 'out: 3->out: 4'
tamper 'a new input' name 'out: 3->out: 40'
tamper 'a new input' domain '39->40'
tamper 'larger errors' bound 1.5
# Windows of one text are no draws: nothing is said, and who says it by hand is found out.
pare data random -q --count 1 --tokens 40 --vocab 9 -o text.npy
pare depth m.st --data text.npy --kind uniform --layers 0 -f -o w.st 2>&1 | grep -E '^new|: nothing' | mask
/usr/bin/env python3 - <<'PY'
import json
said = json.load(open('o.st.cert.json'))
c = json.load(open('w.st.cert.json'))
c['statements'] += [dict(s, bound=1e9, domain=s['domain'].replace('39', '10'), probability=p)
                    for s, p in ((said['statements'][-4], 10 / 11), (said['statements'][-3], 0.99))]
c['hypotheses'] += said['hypotheses'][-1:]
json.dump(c, open('wrong.cert.json', 'w'))
PY
pare verify wrong.cert.json 2>&1 | head -n 1
# What can not be asked.
pare depth m.st --data t.npy --kind uniform --layers 0 --exceed 0.02 -o x.st
pare depth m.st --kind uniform --layers 0 --exceed 0.1 -o x.st
pare depth m.st --data t.npy --kind uniform --max-error 1 --exceed 0.1 -o x.st
pare depth m.st --data t.npy --heldout t.npy --kind linear --layers 0 --exceed 0.1 -o x.st
pare depth m.st --data t.npy --kind uniform --layers 0 --confidence 1 -o x.st 2>&1 | head -n 1
pare depth m.st --data t.npy --kind uniform --layers 0 --exceed 0.7 -o x.st 2>&1 | head -n 1
ls x.st* 2>/dev/null
