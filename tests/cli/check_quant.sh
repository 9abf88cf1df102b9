# pare-check confirms the headline of a quantized model and of a chain that ends with one.
command -v pare-check >/dev/null && [ -x "$PARE_BUILD/pare-check" ] || { echo "SKIP pare-check is not built (libflint-arb-dev)"; exit 77; }
pare data sort --count 80 --length 6 --symbols 3 --seed 1 -q -o sort.npz
m=$PARE_ROOT/models/sort.safetensors
few="--prove 2"
pare fold $m --data sort.npz $few -q -o 1.st >/dev/null
pare width 1.st --data sort.npz $few --keep 60% -q -o 2.st >/dev/null
pare depth 2.st --data sort.npz $few --kind zero --layers 2 -q -o 3.st >/dev/null
pare quant 3.st --data sort.npz $few --bits 5 --affine -q -o 4.st >/dev/null
pare compose 1.st.cert.json 2.st.cert.json 3.st.cert.json 4.st.cert.json -q -o chain.json >/dev/null
for c in 4.st.cert.json chain.json; do
    rm -rf u; pare verify $c --unpack u -q >/dev/null
    pare-check $c --unpacked u --tries 0 >check.txt 2>&1; echo "exit $?"
    grep -oE '^confirmed +(headline|output.tensors)' check.txt; grep -c REFUTED check.txt
done
# A forged bound of the quantized model is refuted.
sed -E '/"headline"/,/}/s/"(proven|measured)": [0-9.e-]+/"\1": 1e-6/' 4.st.cert.json >forged.json
rm -rf u; pare verify forged.json --unpack u -q >/dev/null
pare-check forged.json --unpacked u --tries 1 2>&1 | grep -oE '^REFUTED +headline[a-z.]*' | head -n 1
