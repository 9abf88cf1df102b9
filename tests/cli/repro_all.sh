# The four papers on one page: what a user sees, every row with a verdict, numbers and a command;
# killed and gone on, or shared by two processes, the same bytes; a command of a row gives the row.
words="repro all --only tables,calls,errata,orders --side 8 --large 1 --runs 2 --epochs 2"
mkdir one; cd one
pare $words -q -o out >summary; sed -nE '1,2p; 3,$s/^(.{45}).*/\1/p' summary
grep -E '^(depth|length|errata) |^ +(proof|loose)' summary
ls out out/errata
cd ..
python3 - <<'P'
import glob, json
step, loose = "proof step false, statement may hold", "loose or imprecise"
words = {"printed in the paper": {"reproduced", "differs", "false as printed", "not decided", "not made", step, loose},
         "own reference": {"agrees", "differs"}, "self-consistency": {"holds", "fails"}, "ours": {"ours"}}
rows = false = steps = 0
for name in sorted(glob.glob("one/out/*/tables.json")):
    for table in json.load(open(name))["tables"]:
        for row in table["rows"]:
            rows += 1
            assert row["verdict"] in words[row["class"]] and row["command"].startswith("pare "), row
            printed = row["class"] == "printed in the paper"
            assert printed == (row["published"] is not None or "claim" in row), row
            assert not printed or not any(s in name for s in ("/depth/", "/length/")), row
            if row["class"] != "ours" and row["verdict"] != "not made":
                assert row["ours"] is not None, row
            if row["verdict"] == "false as printed":
                false += 1
                assert row["published"] != row["ours"], row
                assert name.count("width") or "Holds: " in row["note"], row
            steps += row["verdict"] == step
notes = json.load(open("one/out/errata/tables.json"))["notes"]
print(rows > 180, false > 15, steps > 30, notes[-1])
P
grep -c '<section class="card"' one/out/report.html
grep -o 'Made by <code>pare repro length --only calls' one/out/report.html | head -n 1
grep -oE 'Lemma 4.1: .Res\(A\) - Res\(B\). &lt;= .A - B.</div>.*data-l="pare"><div>[0-9.]*' one/out/report.html | sed 's/<[^>]*>/ /g' 
grep -o 'agrees</span><div class="small dim">own reference' one/out/report.html | head -n 1
grep -oE '<th>(printed in the paper|own reference|self-consistency|ours)</th>' one/out/report.html
grep -ciE '<script|https?:' one/out/report.html
echo "-- a row's command gives the row"
pare repro length --only calls -q -o calls >/dev/null
python3 - <<'P'
import json
a, b = (json.load(open(f))["tables"][0]["rows"] for f in ("one/out/length/tables.json", "calls/tables.json"))
print([r["ours"] for r in a] == [r["ours"] for r in b])
P
echo "-- killed, it goes on"
mkdir killed; cd killed
for i in 1 2 3 4 5 6; do
    pare $words -q -t 2 -o out >/dev/null 2>&1 &
    sleep 0.$((i * 15 / 10))
    { kill -9 $! && wait $!; } 2>/dev/null
done
wait 2>/dev/null
pare $words -q -t 1 -o out >summary; cd ..
cmp one/summary killed/summary && cmp one/out/report.html killed/out/report.html && echo "same page"
for s in width depth length errata; do cmp one/out/$s/tables.json killed/out/$s/tables.json && echo "same $s"; done
cd one; pare $words -o out 2>&1 >again | grep -oE 'of them were there already'; cd ..
cmp one/summary one/again && cmp one/out/report.html killed/out/report.html && echo "found again: same page"
echo "-- refused"
exec 2>&1
for w in "repro all --only orders,nothing" "repro width --only orders" "repro all -o no/such" "repro all --data none.npz --only tables" \
    "repro all more"; do
    pare $w -q >printed; echo "exit $?"
    [ ! -s printed ] || echo "something on stdout"
done
