# Polynomial attention while a model learns: it says where it was used, the loss is that of exact
# attention within 0.002 nats, and the model is of kind poly with its tolerance.
exec 2>&1
seq 1 9000 >t.txt
words="--kind gpt --data t.txt --dim 16 --layers 2 --heads 2 --window 2048 --batch 1 --steps 6 --parts shares"
pare train $words -q -o exact.st --log exact.csv >/dev/null
pare train $words --attention poly --tol 0.01 -o poly.st --log poly.csv >out.txt 2>notes.txt
sed -E 's/last: [a-z]+ degree .*/last: a polynomial/' notes.txt
last() { awk -F, '!/^#/ && $3 == 6 { print $4 }' $1; }
awk -v a=$(last exact.csv) -v b=$(last poly.csv) \
    'BEGIN { d = a - b; if (d < 0) d = -d; print (a > 0 && d <= 0.002 && d > 0 ? "near" : "far"), "and not the same" }'
pare info poly.st | grep blocks
echo "-- with so few tokens it is exact, and says so"
pare train ${words/--window 2048/--window 64} --attention poly -q -o few.st >/dev/null
pare train ${words/--window 2048/--window 64} --attention poly -f -o few.st 2>&1 >/dev/null | sed -E 's/(too few).*/\1 .../'
echo "-- and back to exact"
pare train --kind gpt --data t.txt --window 64 --batch 1 --steps 2 --from poly.st --attention exact -q -o back.st >/dev/null
pare info back.st | grep blocks
pare train $words --tol 0.1 -o no.st; echo "exit $?"
pare train $words --attention linear -o no.st | head -2; echo "exit ${PIPESTATUS[0]}"
