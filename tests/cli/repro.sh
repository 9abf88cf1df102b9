# The tables of Shirzad 2024 on a small board: what a user sees, runs that are kept, commands that
# give the same figures, and refusals.
words="repro width --side 12 --large 1 --runs 2 --epochs 4 -q"
pare $words -o out >all
grep -E '^(Table|Figure|note|files)' all | cut -c1-60
sed -nE '/^Table 4/,/^$/p' all | grep -E '^  (Minesweeper|  +(MLP|GCN|Node|Exph|large|small))' | cut -c1-46 | head -n 11
grep -c 'printed, not made again here' all
ls out; ls out/runs | sed -E 's/-[0-9a-f]{8}\./-H./'
cmp all <(cat out/tables.txt; tail -n 1 all) && echo "tables.txt is what was printed"
head -n 2 out/figure.csv | cut -d, -f1-3
grep -c '<rect' out/figure.svg | grep -qv '^0$' && tail -n 1 out/figure.svg
echo "-- found again; nothing is made twice"
pare repro width --side 12 --large 1 --runs 2 --epochs 4 -o out 2>&1 >again
cmp all again && echo "same tables"
echo "-- the same for any number of threads"
pare $words -t 1 -o one >/dev/null; pare $words -t 3 -o two >/dev/null
cmp one/figure.csv two/figure.csv && diff <(sed "s/\\bone\\b/two/g" one/tables.json) two/tables.json && echo "same tables"
echo "-- a run's command gives its figures"
python3 - <<'P' >commands
import glob, json
for kind in ("large", "small", "cut4"):
    r = json.load(open(sorted(glob.glob(f"out/runs/minesweeper-{kind}-*.json"))[-1]))
    print(r["test"], r["command"])
P
while read -r test command; do
    $command -q -f --json | python3 -c "
import json, sys
m = json.load(sys.stdin)['metric']
print(abs(m.get('test', m.get('after')) - $test) < 1e-9)"
done <commands
echo "-- killed, it goes on"
for i in 1 2 3 4 5 6; do
    pare $words -t 2 -o killed >/dev/null 2>&1 &
    sleep 0.$((i * 15 / 10))
    { kill -9 $! && wait $!; } 2>/dev/null
done
wait 2>/dev/null
pare $words -o killed >/dev/null; cmp one/figure.csv killed/figure.csv && echo "same figures"
ls killed/runs | grep -E 'checkpoint|tmp' | sed -E 's/[0-9a-f]{8}/H/'
echo "-- interrupted, it says how far it is"
more="repro width --side 12 --large 1 --runs 2 --epochs 30 -q -t 1"
pare $more -o whole >/dev/null
pare $more -o stopped >/dev/null 2>said &
until [ "$(ls stopped/runs 2>/dev/null | grep -c 'json$')" -ge 2 ] || ! kill -0 $! 2>/dev/null; do sleep 0.02; done
{ kill -TERM $! && wait $!; } 2>/dev/null; echo "exit $?"
sed -E 's/: [1-6] of/: N of/; s/[0-9]+ s/N s/g' said
python3 - <<'P'
import glob, json
old = sorted(glob.glob("stopped/runs/*.json"))[0]
run = json.load(open(old)); print(run.pop("seconds") >= 0); json.dump(run, open(old, "w"))
P
pare $more -o stopped >/dev/null; cmp whole/figure.csv stopped/figure.csv && echo "a file without its time is read: same figures"
echo "-- refused"
exec 2>&1
pare data sort -q -o s.npz
for w in "repro" "repro nothing" "repro depth --model none.npz" "repro width more" "repro width --side 3" "repro width --data none.npz" \
    "repro width --data s.npz" "repro width --data out/minesweeper-12-0.npz --data out/minesweeper-12-0.npz" \
    "repro length --data s.npz" "repro errata --data s.npz" "repro ticket --model m.st" "repro errata --side 9" "repro depth --epochs 3" "repro width --runs 0" "repro width -o no/such" "repro width -o all"; do
    pare $w -q >printed; echo "exit $?"
    [ ! -s printed ] || echo "something on stdout"
done
[ ! -e repro-width ] || echo 'a folder was made'
