# pare quant --compare: methods side by side at the same number of stored bits; and the method seedlm.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model --dim 24 --heads 2 --layers 1 --context 12 --vocab 40 -q -o m.safetensors
pare data random --count 60 --tokens 12 --vocab 40 -q -o in.npy
pare data random --count 20 --tokens 10 --vocab 40 --seed 1 -q -o other.npy

# Bits and bytes are exact; errors depend on the last bits of the CPU's sums.
pare quant m.safetensors --compare all --bits 4 --data in.npy --other other.npy -q >table.txt
sed -E 's/^(  masks) .*/\1 all/; s/^(  [a-z]+ +[0-9.]+ +[0-9,]+) .*/\1 E S O/; s/^(original).*/\1 N/' table.txt
awk '$1 ~ /^(rtn|gptq|seedlm|masks|trellis)$/ { e[$1] = $4; if (!($5 > -.5 && $5 < .5 && $6 > -.5 && $6 < .5)) print "odd: " $0 }
     END { for (m in e) if (!(e[m] > .003 && e[m] < (m == "masks" ? .5 : .1))) print m " has the error " e[m]
           print e["rtn"] < e["seedlm"] && e["seedlm"] < e["masks"] ? "in order" : "NOT in order" }' table.txt
pare quant m.safetensors --compare rtn,seedlm --bits 3.5 --data in.npy --json -q |
  tr ',{' '\n\n' | grep -E '"(method|bits|bytes|other)"'

pare quant m.safetensors --method seedlm --bits 4 --data in.npy -q -o s4 | grep -A1 '^cut'
pare verify s4 -q | grep -oE "^verdict +[A-Z]+"
cp s4.cert.json first.json
pare quant m.safetensors --method seedlm --bits 4 --data in.npy -q -f -t 1 -o s4 >/dev/null
cmp first.json s4.cert.json && echo "the same for one thread"
pare info s4 | head -1

for words in "--compare foo --data in.npy" "--compare all" "--compare all --data in.npy --bits 7" \
  "--compare all --data in.npy -o x" "--compare all --data nowhere.npz" "--other in.npy -o x" "--bits 4" \
  "--method seedlm --bits 7 -o x" "--method seedlm --bits 3.5 -o x" "--method seedlm --bits 4 --group 32 -o x" \
  "--method seedlm --bits 4 --affine -o x"; do
  echo "$ pare quant m.safetensors $words"
  pare quant m.safetensors $words 2>&1 | grep -v '^usage'
done
ls
