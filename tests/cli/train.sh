# Each kind learns something from its data; same bytes for any number of threads; a second run is
# another seed; what is kept is the best of them.
exec 2>&1
pare data minesweeper --side 14 -q -o b.npz
pare data sort --count 400 --length 3 -q -o s.npz
pare data angular --count 80 --tokens 5 -q -o a.npz
seq 1 3000 | tr '\n' ' ' >t.txt
small="--dim 8 --layers 1"
learn() { # name, words: with one thread and with two
    local name=$1
    shift
    pare train $small "$@" -t 1 -q -o $name.1.st >$name.out || cat $name.out
    pare train $small "$@" -t 2 -q -o $name.2.st >/dev/null
    cmp $name.1.st $name.2.st
    pare info $name.1.st | grep -E '^(name|attention|parameters)' | tr -s ' ' | tr '\n' ';'
    sed -nE 's/^result +test ([a-z]+) .*/ \1/p' $name.out
}
for k in graph mlp gcn; do learn $k --kind $k --data b.npz --epochs 4; done
learn loops --kind graph --data b.npz --epochs 4 --self-loops --expander 2
learn full --kind graph --data b.npz --epochs 4 --full
learn two --kind graph --data b.npz --epochs 4 --heads 2
learn sort --heads 1 --kind gpt --data s.npz --steps 8 --batch 8
learn text --heads 1 --kind gpt --data t.txt --steps 8 --batch 4 --window 16 --eval-tokens 64
learn turn --heads 1 --kind encoder --data a.npz --steps 8 --batch 8
for i in $(seq 60); do printf 'a good day number %d\t1\na bad day\t0\n' $i; done | (printf 'sentence\tlabel\n'; cat) >s.tsv
learn sentences --kind encoder --data s.tsv --steps 60 --batch 16 --lr 0.01
pare eval sentences.1.st --data s.tsv | grep accuracy
learn taught --kind graph --data b.npz --epochs 4 --teacher loops.1.st --distill 0.9 --hidden 0.1 \
    --self-loops --expander 2
pare train --kind graph --from graph.1.st --data b.npz --epochs 4 -q -o more.st | grep -c '^result'
pare eval text.1.st --data t.txt | grep -c perplexity

echo "-- runs"
pare train --kind graph --data b.npz $small --grid 'lr=0.1,0.01;epochs=2,3' --runs 2 -o r.st -t 2 |
    sed -E 's/[01]\.[0-9]{6}/X/g; s/at step [0-9]+/at step N/; s/  kept//; s/: the best.*//' >r.out
grep -cE '^lr (0.1|0.01), [23] steps$' r.out
grep -E '^  (run|std)' r.out | sort | uniq -c | tr -s ' '
pare train --kind graph --data b.npz $small --epochs 3 --runs 2 --seed 4 -q -o both.st --json >j
for s in 4 5; do pare train --kind graph --data b.npz $small --epochs 3 --seed $s -q -o $s.st >/dev/null; done
best=$(python3 -c 'import json; j = json.load(open("j")); print(4 + j["best_run"])')
cmp both.st $best.st && echo "run r is the run of seed S + r"
pare train --kind graph --data b.npz $small --epochs 3 --runs 2 --over split -q -o sp.st --json >j
pare train --kind graph --data b.npz $small --epochs 3 --seed 1 --split 1 -q -o one.st --json >k
python3 - <<'END'
import json
j, k = json.load(open("j")), json.load(open("k"))
print([r["split"] for r in j["settings"][0]["runs"]], [r["seed"] for r in j["settings"][0]["runs"]])
print(j["settings"][0]["runs"][1]["val"] == k["metric"]["val"])
print(sorted(j), sorted(j["metric"]), sorted(j["settings"][0]))
runs = [r["val"] for r in j["settings"][0]["runs"]]
print(abs(j["settings"][0]["val"]["mean"] - sum(runs) / 2) < 1e-12, j["metric"]["val"] == max(runs))
END

echo "-- log"
pare train --kind graph --data b.npz $small --epochs 3 -q -o l.st --log l.csv --seed 7 >/dev/null
grep '^#' l.csv
# losses and marks are of this CPU; which step was the best so far may be, too
awk -F, '/^setting/ { print; next } !/^#/ { print $1, $2, $3, $5, ($4 > 0 && $6 > 0 && $7 > 0), NF }' l.csv
pare train --kind graph --data b.npz $small --epochs 3 -q -o l.st --log l2.csv --seed 7 -f >/dev/null
diff <(grep -v '^#' l.csv) <(grep -v '^#' l2.csv) && echo "same command, same lines"
ls | grep -E 'checkpoint|tmp|part'
