# One model and one file: every command measures on the same held-out inputs, and says so.
for i in $(seq 1 300); do echo "line $i says that $((i * i % 97)) is not $((i * 7 % 89))"; done > t.txt
pare data model -q --kind gpt -o g.st --dim 16 --layers 2 --heads 2 --context 32
pare data sort -q --count 90 -o s.npz
cp "$PARE_ROOT/models/sort.safetensors" s.st
before() { python3 -c 'import json, sys; j = json.load(sys.stdin); m = j.get("held_out") or j["metric"]
if j["metric"]["name"] == "perplexity": m["value"] = m["nats"]
print(sys.argv[1], "%.12g" % m.get("before", m.get("value")), m["counted"], m["inputs"])' "$1"; }
for w in "g.st t.txt" "g.st t.txt --seed 5" "s.st s.npz"; do
    set -- $w; m=$1 d=$2; shift 2
    case $d in *.txt) window="--window 32" ;; *) window= ;; esac
    {
        pare eval $m --data $d --json "$@" | before eval
        # a training that changes nothing scores the model it starts from
        pare train --kind gpt --from $m --data $d $window --steps 1 --lr 0 --last-lr 0 --json -q -f -o o.st "$@" | before train
        pare width $m --data $d --keep 0.8 --prove 2 --json -q -f -o o.st "$@" | before width
        pare depth $m --data $d --layers 1 --prove 3 --json -q -f -o o.st "$@" | before depth
        pare ticket $m --data $d --bits 12 --prove 2 --json -q -f -o o.st "$@" | before ticket
        pare fold $m --data $d --prove 2 --json -q -f -o o.st "$@" | before fold
        pare quant $m --data $d --bits 6 --prove 2 --json -q -f -o o.st "$@" | before quant
        pare plan $m --data $d --max-error 5 --directions depth,ticket --mixtures 0 --prove 2 --json -q -f -o o.st "$@" | before plan
    } >said
    cut -d' ' -f2- said | sort -u | wc -l
    sed -E 's/^([a-z]+) [^ ]+/\1 N/' said
done
# Every line that shows a score says on what.
pare eval g.st --data t.txt | grep -E 'tokens' | sed -E 's/[0-9]+\.[0-9]+/N/g'
pare width g.st --data t.txt --keep 0.8 --prove 2 -q -f -o o.st | grep -E '^quality|of the' | sed -E 's/[0-9]+\.[0-9]+|[0-9]{3}\b/N/g'
# What train says of the model that it writes is what eval finds on it, whatever the data.
printf 'sentence\tlabel\n' >c.tsv
for i in $(seq 1 90); do printf 'word%d and %s\t%d\n' $i "$(seq -s ' ' $((i % 7)))" $((i % 2)); done >>c.tsv
for i in $(seq 1 60); do printf 'document %d has %d words\n\n' $i $((i * i)); done >d.txt
pare data angular -q --count 90 --tokens 5 -o a.npz
ends() { # kind, data, options
    local kind=$1 d=$2
    shift 2
    pare train --kind $kind --data $d --dim 8 --heads 2 --layers 1 --steps 5 --seed 3 --json -q -f -o w.st "$@" | before train >a
    pare eval w.st --data $d --seed 3 --json | before eval >b
    cut -d' ' -f2- a b | sort -u | wc -l
    sed -E 's/^([a-z]+) [^ ]+/\1 N/' a
}
ends gpt t.txt --window 32
ends gpt d.txt --window 64
ends encoder c.tsv
ends encoder a.npz
ends gpt s.npz --runs 2
pare train --kind gpt --data d.txt --dim 8 --heads 2 --layers 1 --steps 5 --seed 3 -q -f -o w.st | grep -E '^(result|data|held)' | sed -E 's/[0-9]+\.[0-9]+/N/g; s/at step.*/at step/'
pare train --kind gpt --data t.txt --val d.txt --test d.txt --dim 8 --heads 2 --layers 1 --steps 5 --seed 3 -q -f -o w.st | grep -E '^(result|data|held)' | sed -E 's/[0-9]+\.[0-9]+/N/g; s/at step.*/at step/'
