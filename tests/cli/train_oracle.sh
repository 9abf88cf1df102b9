# Training through an engine that takes 16 of 64 tokens: the losses are those of ordinary training to
# 4 digits, no call has more rows than it may, and the calls are those of the tiles.
exec 2>&1
seq 1 3000 >t.txt
long="--kind gpt --data t.txt --dim 16 --layers 2 --heads 2 --window 64 --batch 4 --steps 99999999"
words="${long% *} 6"
pare train $words -q -o plain.st --log plain.csv >/dev/null
pare train $words --oracle 16 -q -o small.st --log small.csv | grep -vE '^(result|schedule)'
losses() { awk -F, '!/^[#s]/ { printf "%.4g ", $4 } END { print "" }' $1; }
losses plain.csv
losses small.csv
paste -d, plain.csv small.csv | awk -F, '!/^[#s]/ { d = $4 - $13; if (d < 0) d = -d; if (!(d <= 1e-6)) print "far: " $0 }'
echo "-- an encoder: full attention over 63 tokens, 8 x 8 tiles of 8 tokens a head, and JSON"
pare data sort --count 60 --length 32 -q -o s.npz
enc="--kind encoder --data s.npz --dim 8 --layers 1 --heads 2 --batch 8 --steps 4 --seed 2"
pare train $enc -q -o e.st --log e.csv >/dev/null
pare train $enc --oracle 8 --dropout 0 -q --json -o eo.st --log eo.csv |
    /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["engine"])'
losses e.csv
losses eo.csv
echo "-- threads and several runs: the same bytes, all calls counted"
pare train $words --oracle 16 --runs 2 -t 2 -q -o two.st | grep engine
pare train $words --oracle 16 --runs 2 -t 1 -q -f -o one.st | grep engine
cmp one.st two.st
echo "-- a run is taken up again with the same engine only"
pare train $long --oracle 16 --keep-every 1 -q -o r.st >/dev/null &
for _ in $(seq 6000); do [ -e r.st.checkpoint ] && break; sleep 0.01; done
{ kill -9 $!; wait $!; } 2>/dev/null
for w in "" "--oracle 32"; do
    pare train $long $w --resume -q -o r.st; echo "exit $?"
done
rm -f r.st.checkpoint*
echo "-- refused, by name"
no() { pare train "$@" -q -o no.st; echo "exit $?"; }
no $words --oracle 16 --attention poly
no $words --oracle 0
pare data minesweeper --side 10 -q -o b.npz
no --kind graph --data b.npz --oracle 8 --epochs 1
no --kind mlp --data b.npz --oracle 8 --epochs 1
pare train --kind graph --full --data b.npz --oracle 8 --dim 8 --layers 1 --epochs 2 -q -o g.st | grep engine
echo "-- a run that diverges says so, as it does without"
for w in "" "--oracle 16"; do no $words $w -f --lr 1e9 --clip 0 | sed -E 's/[0-9.]+e\+[0-9]+|-?nan|inf/X/'; done
ls *.st
