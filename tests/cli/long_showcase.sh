# make showcase, without installing: real models in few bits; its table, and that of README.md.
models=$("$PARE_ROOT/tools/get-models" minilm stories15M) || { echo "$models" | grep SKIP; exit 77; }
BUILD=$PARE_BUILD "$PARE_ROOT/tools/showcase" "$PWD/showcase" >said.txt 2>errors.txt || { echo "exit $?"; tail -5 said.txt errors.txt; }
grep -cE '^verdict +HOLDS' said.txt
grep -oE '^verdict +REFUSED' said.txt
grep -oE 'nothing is refuted' said.txt
[ -s showcase/report.html ] && [ -s showcase/minilm-int8.onnx ] && echo "a page and an ONNX file"
# No mean is below what is proven by more than chance; a ticket is nearer than GPTQ, and that than rounding.
awk -F'|' '
    /4.25 bits|3.25 bits|8 bits/ {
        mean = $6 + 0; proven = $7 + 0
        print $2 (proven > 0 && proven <= 1 && mean > .8 && mean <= 1 ? ": as it must be" : ": " $0)
        bits = substr($2, 2, 4); way = $2
        if (way ~ /ticket/) ticket[bits] = mean
        if (way ~ /GPTQ/) gptq[bits] = mean
        if (way ~ /nearest/) rtn[bits] = mean
    }
    END { for (k = split("4.25 3.25", list, " "); k > 0; k--) { b = list[k]; print b, (ticket[b] > gptq[b] && gptq[b] > rtn[b] ? "in order" : "NOT in order") } }' showcase/table.md
# README.md has the same table, but for the times and for what a changed document moves.
awk -F'|' '
    NR == FNR { if (NF == 8) is[$2] = $0; next }
    NF == 8 && ($2 in is) && $2 !~ /MiniLM|---/ {
        split(is[$2], now, "|"); n++
        if (($3 - now[3]) ^ 2 > .05 ^ 2 || ($6 - now[6]) ^ 2 > .004 ^ 2 || ($7 - now[7]) ^ 2 > .02 ^ 2) print "README.md: " $0 " now: " is[$2]
    }
    END { print n, "rows of README.md" }' showcase/table.md "$PARE_ROOT/README.md"
