# The metric each kind of data calls for, and KL of a model to itself and to another.
s='s/^time .*/time/; s/  *$//; s/[0-9]+\.[0-9]+/N/g'
pare data model -q -o gpt.st --dim 16 --heads 2 --layers 1 --context 16
pare data model -q -o other.st --dim 16 --heads 2 --layers 1 --context 16 --seed 1
pare data model -q -o bert.st --kind bert --dim 16 --heads 2 --layers 1
pare data model -q -o graph.st --kind graph --dim 16 --heads 2 --layers 1
pare data minesweeper -q --side 8 -o g.npz
pare data sort -q --count 10 -o sort.npz
for i in 1 2 3 4 5; do echo "This is line $i of a text that nobody wrote."; done >t.txt
printf 'sentence\tlabel\na fine day\t1\na bad day\t0\nfine\t1\n' >s.tsv
pare eval graph.st --data g.npz | sed -E "$s"
pare eval graph.st --data g.npz --split 3 | sed -E "$s" | grep split
pare eval gpt.st --data t.txt | sed -E "$s"
pare eval gpt.st --data t.txt --window 8 --f64 | sed -E "$s" | grep -E "data|time"
pare eval gpt.st --data sort.npz | sed -E "$s"
pare eval bert.st --data s.tsv | sed -E "$s"
pare eval gpt.st --data t.txt --reference gpt.st | sed "s/^time .*/time/" | tail -n 5
pare eval gpt.st --data t.txt --reference other.st --json | grep -oE '"(command|name)": "[a-z]*"|"[a-z_0-9]+": [[{"0-9]' | cut -d: -f1 | sort | uniq -c
pare eval gpt.st --data t.txt --reference bert.st 2>&1; echo "exit $?"
pare eval gpt.st --data s.tsv | sed -E "$s"
pare eval gpt.st --data none.txt 2>&1; echo "exit $?"
