# Texts in: documents of every kind of file, columns, texts of the model itself, and held-out inputs that verify draws again.
n='s/[0-9]+\.[0-9]+/N/g; /^time/d'
pare data model -q --kind gpt -o g.st --dim 16 --layers 2 --heads 2 --context 32
pare data model -q --kind bert -o b.st --dim 16 --layers 1 --heads 2 --context 8
printf 'id,review,label\r\n1,"a ""fine"" day,\nand more of it",1\r\n2,bad,0\r\n' >r.csv
printf '{"body": "a fine day", "label": 1}\n\n{"body": "bad\\nand worse", "label": 0}\n' >r.jsonl
printf 'one text\nof two lines\n\n\nanother\n' >t.txt
for f in r.csv r.jsonl t.txt; do pare eval g.st --data $f --column review 2>&1 | sed -E "$n"; done
for f in r.csv r.jsonl t.txt; do pare eval g.st --data $f $([ $f = r.csv ] && echo --column 2) | sed -E "$n"; done
pare eval g.st --data t.txt --whole | sed -E "$n"
pare eval b.st --data r.jsonl 2>&1 | sed -E "$n"
pare eval g.st --data r.csv; echo "exit $?"
printf 'text\n"open\n' >open.csv
pare eval g.st --data open.csv; echo "exit $?"
printf 'text\ncaf\351\n' >latin.csv
pare eval g.st --data latin.csv 2>&1 >/dev/null
pare eval g.st --data self:3; echo "exit $?"
# The column is in the certificate; another list of inputs than the drawn one is refused.
{ echo id,words; for i in $(seq 1 60); do echo "$i,line $i says that $((i * i % 97)) is not $((i * 7 % 89))"; done; } >c.csv
pare width g.st --data c.csv --column words --keep 0.8 -q -o o.st | grep -E '^quality' | sed -E "$n"
pare verify o.st -q | grep -E '^verdict|data ' | sed -E "$n"
grep -o '"column": "words"' o.st.cert.json
python3 - <<'END'
import json
c = json.load(open("o.st.cert.json"))
d = c["data"]
others = [i for i in range(60) if i not in d["numbers"]]
for name, change in {"other": {"numbers": sorted(d["numbers"][1:] + others[:1])}, "column": {"column": "id"},
                     "seed": {}}.items():
    forged = dict(c, data=dict(d, **change))
    if name == "seed": forged["reduction"] = dict(c["reduction"], seed="1")
    if name == "other": forged["data"].pop("heldout"); forged["data"].pop("writers_word"); forged["theorems"] = [t for t in c["theorems"] if not t["kind"].startswith("new")]
    json.dump(forged, open(name + ".cert.json", "w"))
END
for f in other column seed; do pare verify $f.cert.json -q 2>/dev/null | grep verdict; done
