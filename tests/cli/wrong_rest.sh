# Wrong command lines: each answer says what is wrong and what to do. Nothing is written.
exec 2>&1
t() { echo "\$ pare $*"; pare "$@" | sed 's/^/  /'; echo "exit ${PIPESTATUS[0]}"; }
pare data model -q -o gpt.st --dim 8 --heads 2 --layers 1 --context 11
pare data model -q -o llama.st --kind llama --dim 8 --heads 2 --layers 1
pare data model -q -o bert.st --kind bert --dim 8 --heads 2 --layers 1
pare data model -q -o graph.st --kind graph --dim 8 --heads 2 --layers 1
pare data model -q -o five.st --dim 8 --heads 2 --layers 1 --vocab 5
pare data minesweeper -q --side 6 -o g.npz
pare data sort -q -o sort.npz
pare data random -q --count 1 --tokens 5 -o ids.npy
printf 'the\ncat\nsat\n[CLS]\n[SEP]\n' >words.txt
pare import five.st --vocab words.txt -q -o words.st >/dev/null
printf 'the cat\nsat \377 here\n' >odd.txt
printf 'sentence\tlabel\nthe dog sat\t1\nthe cat\t0\n' >odd.tsv
ls >before
echo "-- words that do not exist"
t data cats
t data modle -o x.st
t data model --kind lama -o x.st
t bench nothing
t bench atention
t repro lenght
t repro everything
t probe gpt.st --part lenght
t probe gpt.st --part x
t run gpt.st --input ids.npy --oracle 4 --mode nativ
t run gpt.st --input ids.npy --oracle 4 --backend gpu
t train --kind gtp --data odd.txt -o x.st
t run gpt.st --txet hello
t length gpt.st --orcale 8 --dry-run
echo "-- options without a meaning in this call"
t run gpt.st --input ids.npy --temperature 0.5
t run gpt.st --text hi --tokens 0 --top-p 0.5
t run gpt.st --text hi --temperature 0 --top-p 0.5
t run bert.st --text hi --temperature 0.5
t run gpt.st --input ids.npy --tol 0.1
t run gpt.st --input ids.npy --backend cpu
t run gpt.st --input ids.npy --oracle 4 --delta 0.1
t run gpt.st --input ids.npy --oracle 4 --timeout 3
t eval graph.st --data g.npz --window 4
t eval gpt.st --data odd.txt --split 3
t info gpt.st --edges 4
t probe graph.st --data g.npz --tokens 4
t length gpt.st --oracle 4 --rows 3 --dry-run
t length graph.st --data g.npz --tokens 3 --oracle 4 --dry-run
t export gpt.st --causal -o x.onnx
t data random --width 3 -o x.npy
t data model --classes 3 -o x.st
t bench --graph g.npz hash
t repro errata --side 20
t repro errata --epochs 3
t repro length --data g.npz
t train --kind mlp --data g.npz --heads 2 -o x.st
t train --kind gcn --data g.npz --attention poly -o x.st
t train --kind graph --data g.npz --batch 3 -o x.st
t train --kind graph --data g.npz --window 3 -o x.st
t train --kind graph --data g.npz --temperature 3 -o x.st
t train --kind graph --data g.npz --over split -o x.st
t train --kind graph --data g.npz --lr 0.1 --grid lr=1,2 -o x.st
t train --kind gpt --data odd.txt --split 3 -o x.st
t train --kind gpt --data sort.npz --vocab words.txt -o x.st
echo "-- what cannot be"
t run gpt.st
t run gpt.st --text a --input ids.npy
t length gpt.st --tokens 4096 --oracle 4 --dry-run
t length gpt.st --tokens 8 --oracle 4
t length gpt.st --tokens 8 -o p.json
t run graph.st --text hi
t eval bert.st --data odd.txt
t import ids.npy -o x.st
t train --kind encoder --data g.npz -o x.st
t train --kind graph --data g.npz --from gpt.st -o x.st
t run gpt.st --input ids.npy -o y.txt
t export gpt.st -o a.pdf
echo "-- a certificate, a plan or other JSON in the place of another file"
(
    mkdir json && cd json || exit
    pare fold ../gpt.st -q -o f.st >/dev/null
    pare length ../gpt.st -q --oracle 4 -o p.json >/dev/null
    pare info ../gpt.st --json >o.json
    t info f.st.cert.json
    t info p.json
    t verify p.json
    t verify o.json
    t run ../gpt.st --text a --plan o.json
    t report f.st -o r.html
    t report ../gpt.st -o r.html
    cd .. && rm -r json
)
echo "-- a missing input is named also where the output exists"
for c in "run none.st --input ids.npy" "run gpt.st --input none.npy" "length none.st --oracle 4" "import none.st" "import gpt.st --vocab none.txt" \
    "export none.st" "probe gpt.st --data none.npz" "train --kind graph --data none.npz" "train --kind graph --data g.npz --teacher none.st" "report none.json"; do
    t $c -o words.txt
done
echo "-- text that is not UTF-8, and words that the vocabulary lacks"
echo "with -q: $(pare eval words.st --data odd.txt -q 2>&1 | grep -c warning) warnings"
for c in "eval words.st --data odd.txt" "eval llama.st --data odd.txt" "run words.st --prompts odd.txt --tokens 1" "probe llama.st --data odd.txt --part length" \
    "train --kind gpt --data odd.txt --window 4 --steps 1 -o x.st"; do
    echo "\$ pare $c"; pare $c 2>&1 >/dev/null | grep -E 'warning|needed'
done
echo "\$ pare run words.st --text 'a dog sat'"; pare run words.st --text 'a dog sat' --tokens 1 2>&1 >/dev/null | grep warning
rm -f before2; ls | grep -v before2 >before2; diff before before2
true
