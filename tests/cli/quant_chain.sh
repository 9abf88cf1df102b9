# Quantization after other cuts: one chain, one certificate; and as a direction of a plan, whose
# bytes are the bytes of the file. (check_quant.sh: the same chain by pare-check.)
. "$PARE_ROOT/tests/cli/digits.inc"
verdict() { pare verify -q $1 | grep -oE '^verdict +[A-Z]+'; }
pare data sort --count 120 --length 6 --symbols 3 --seed 1 -q -o sort.npz
m=$PARE_ROOT/models/sort.safetensors
few="--prove 4"
pare fold $m --data sort.npz $few -q -o 1.st >/dev/null
pare width 1.st --data sort.npz $few --keep 60% -q -o 2.st >/dev/null
pare depth 2.st --data sort.npz $few --kind zero --layers 2 -q -o 3.st >/dev/null
pare quant 3.st --data sort.npz $few --bits 5 -q -o 4.st | grep -E '^(size|cut)' | digits
pare compose 1.st.cert.json 2.st.cert.json 3.st.cert.json 4.st.cert.json -q -o chain.json | grep -E 'chain|proven' | head -n 2 | digits
verdict chain.json
pare eval 4.st --data sort.npz -q | grep accuracy
# A changed integer: the certificate is not of this model.
cp 4.st.cert.json bad.cert.json
pare quant 3.st --data sort.npz $few --bits 4 -q -o other.st >/dev/null
pare verify bad.cert.json --output other.st -q >/dev/null 2>&1; echo "exit $?"
# A plan: accuracy decides, and the bytes that it promises are those of the file.
for b in 60k 45k; do
    pare plan $m --data sort.npz $few --directions width,quant --max-bytes $b --mixtures 4 -q -f -o p.st --json >p.json
    python3 - $b <<'PY'
import json, os, sys
o = json.load(open("p.json"))
best = next(t for t in o["tries"] if t["cut"] == o["chosen"])
print(sys.argv[1], "kept" if os.path.getsize("p.st") <= int(sys.argv[1][:-1]) * 1000 else "EXCEEDED",
      "as promised" if os.path.getsize("p.st") == best["bytes"] else "NOT AS PROMISED",
      "quant" in o["chosen"], "loss %.3g" % best["loss"],
      "the least" if best["loss"] <= min(max(t["loss"], 0) for t in o["tries"] if "loss" in t and t["fits"]) else "NOT THE LEAST")
PY
done
verdict p.st.chain.cert.json 2>/dev/null || verdict p.st
pare plan $m --data sort.npz --directions quant --max-bytes 5k -q -o none.st 2>&1 | sed -E 's/[0-9.]+ times/N times/' | head -n 1; ls none.st* 2>/dev/null
pare plan $m --data sort.npz --directions quantum --max-bytes 5k -q -o none.st 2>&1 | head -n 1
# Of a Hugging Face folder: a pare file, and no folder, because no loader reads such groups.
pare data model -q --kind llama -o l.st --dim 16 --heads 2 --layers 1 --context 12 --vocab 40
pare export l.st -q -o hf >/dev/null
pare quant hf --bits 4 -q -o hf4/ 2>&1 | head -n 1; ls hf4 2>/dev/null
pare quant hf --bits 4 -q -o hf4.st 2>&1 >/dev/null; verdict hf4.st
pare plan hf --directions quant --max-bytes 10k -q -o hf4/ 2>&1 | head -n 1
