# pare-check agrees with every certificate that `make demo` writes (tools/demo), and refutes the forged one.
command -v pare-check >/dev/null || { echo "SKIP pare-check is not built (Debian: libflint-dev, libflint-arb-dev)"; exit 77; }
mkdir -p build tools
cp "$PARE_ROOT/tools/demo" tools/demo
ln -s "$PARE_ROOT/models" models
ln -s "$(command -v pare)" build/pare
tools/demo >demo.txt 2>&1 || tail -n 5 demo.txt
ls out/*.cert.json
for c in out/*.cert.json; do
    pare verify $c --unpack plain -f -q >/dev/null # the models of models/ are of version 1
    pare-check $c --unpacked plain --tries 5 >out.txt 2>err.txt
    echo "$c: exit $?, $(grep -c '^confirmed' out.txt) confirmed"
    grep -oE '^REFUTED +[a-z_.]+' out.txt
    head -n 2 err.txt
done
