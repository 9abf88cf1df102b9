# Held-out inputs say something of inputs that are not there yet: one more, and all of them.
pare data model -q --kind gpt -o m.st --dim 8 --heads 2 --layers 1 --context 4 --vocab 9
pare data random -q --count 39 --tokens 4 --vocab 9 -o t.npy
mask() { sed -E 's/(moves by more than )[0-9.e-]+/\1N/; s/: at most [0-9.]+(e-[0-9]+)?, with/: at most N, with/'; }
pare depth m.st --data t.npy --heldout t.npy --kind uniform --layers 0 --prove 30 -q -o o.st | grep -E '^new|^ +(on an|provided|at most|no output)' | mask
# With 39 of them and more the largest error is left out, too; how many are, and the confidence, are
# functions of their number alone.
pare depth m.st --data t.npy --heldout t.npy --kind uniform --layers 0 --prove 39 -q -f -o o.st | grep -E '^new|^ +(on an|provided|at most|no output)' | mask
pare verify -v o.st.cert.json | grep -E 'new|trust|verdict' | mask
pare report o.st.cert.json -q -o page.html >/dev/null && grep -o 'a new input of the same source' page.html | sort -u
# The larger the errors that are left out, the smaller the bound.
/usr/bin/env python3 - <<'PY'
import json
one, few = [t for t in json.load(open('o.st.cert.json'))['theorems'] if t['kind'] == 'new_input.outputs']
print(few['bound'] < one['bound'], round(1 - one['probability'], 4), round(1 - few['probability'], 4))
PY
# Whatever is made better than it is, is found out.
tamper() {
    /usr/bin/env python3 - "$@" <<'PY'
import json, sys
c = json.load(open('o.st.cert.json'))
d, word = c['data'], c['data']['writers_word']
t = [t for t in c['theorems'] if t['kind'] == 'new_input.outputs'][-1]
s = [t for t in c['theorems'] if t['kind'] == 'new_inputs.share'][-1]
exec(sys.argv[1])
json.dump(c, open('wrong.cert.json', 'w'))
PY
    pare verify wrong.cert.json >/dev/null 2>said
    echo "exit $?: $1"
}
tamper "s['bound'] *= 0.999"
tamper "s['probability'] *= 1.001"
tamper "s['parameters']['left_out'] = 2; s['sentence'] = s['sentence'].replace('out: 1', 'out: 2')"
tamper "t['bound'] *= 0.999"
tamper "t['probability'] *= 1.001"
tamper "t['parameters']['left_out'] = 2; t['sentence'] = t['sentence'].replace('out: 1', 'out: 2')"
tamper "t['parameters']['draws'] = 40; t['sentence'] = t['sentence'].replace('39', '40')"
tamper "t['domain'] = t['domain'].replace('39', '40')"
tamper "word['candidates'] = 2"
tamper "word['fitted']['inputs'] = d['heldout']['inputs'][:1]"
tamper "d['heldout']['inputs'].pop()"
tamper "d['heldout']['tokens'] = 2"
tamper "c['data'].pop('writers_word'); c['data'].pop('heldout')"
tamper "s['bound'] *= 1.5"
# Windows of one text are no draws: nothing is said, and who says it by hand is found out.
pare data random -q --count 1 --tokens 40 --vocab 9 -o text.npy
pare depth m.st --data text.npy --kind uniform --layers 0 -f -o w.st 2>&1 | grep -E '^new|^ +at most|no statement' | mask
# So it is where the cut was fitted to the same inputs, or was kept or thrown away because of them.
pare depth m.st --data t.npy --heldout t.npy --kind linear --layers 0 -f -o f.st 2>&1 | grep -E '^new|^ +at most|no statement' | mask
pare depth m.st --data t.npy --heldout t.npy --kind uniform --layers 0 --max-error 100 -f -o e.st 2>&1 | grep -E '^new|^ +at most|no statement' | mask
pare depth m.st --data t.npy --kind uniform --max-error 100 -f -o s.st 2>&1 | grep -E '^new|^ +at most|no statement' | mask
# By hand: with nothing to rest on, and with what is not so.
/usr/bin/env python3 - <<'PY'
import json
said = json.load(open('o.st.cert.json'))
for name in 'wfe':
    c = json.load(open(name + '.st.cert.json'))
    c['theorems'] += [t for t in said['theorems'] if t['kind'].startswith('new_input')]
    c['hypotheses'] += [h for h in said['hypotheses'] if h['kind'].startswith('new_input')]
    json.dump(c, open(name + '1.cert.json', 'w'))
    for key in ('writers_word', 'heldout'): c['data'][key] = said['data'][key]
    json.dump(c, open(name + '2.cert.json', 'w'))
PY
for f in w1 f1 e1 w2; do pare verify $f.cert.json 2>/dev/null | grep -oE '^verdict +[A-Z]+'; done
# What can not be asked.
pare depth m.st --kind uniform --layers 0 --prove 9 -o x.st
pare depth m.st --data t.npy --heldout t.npy --kind uniform --layers 0 --prove 0 -o x.st 2>&1 | head -n 1
pare depth m.st --data t.npy --heldout t.npy --kind uniform --layers 0 --confidence 0.99 -o x.st 2>&1 | head -n 1
ls x.st* 2>/dev/null
