# Whole models by the ONNX Runtime client of examples/pipe, through the engine that pare exports.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
command -v node >/dev/null || { echo "SKIP needs node"; exit 77; }
[ -d $PARE_ROOT/build/peers/node_modules/onnxruntime-node ] || { echo "SKIP needs onnxruntime-node: make setup-bench"; exit 77; }
exec 2>&1
pare data model -q --kind gpt --dim 16 --heads 2 --layers 2 --context 60 -o gpt.st >/dev/null
pare data model -q --kind bert --dim 16 --heads 2 --layers 2 --context 60 -o bert.st >/dev/null
pare data random -q --count 2 --tokens 60 -o x.npy
try() { # MODEL TOLERANCE WORDS...
    rm -f y.npy z.npy
    m=$1 t=$2; shift 2
    pare run -q $m --input x.npy -o z.npy >/dev/null
    pare run -q $m --input x.npy "$@" -o y.npy >out || { cat out; return; }
    $python -c "
import numpy as np
y, z = np.load('y.npy'), np.load('z.npy')
print('$m', 'agrees' if abs(y - z).max() <= $t * abs(z).max() else abs(y - z).max())"
}
for m in gpt bert; do
    pare export -q $m.st --oracle 16 --batch 8 -o $m.onnx >/dev/null
    try $m.st 1e-5 --oracle 16 --backend onnx:$m.onnx
done
pare export -q gpt.st --oracle 16 --batch 8 --causal -o causal.onnx >/dev/null
try gpt.st 1e-5 --oracle 16 --backend onnx:causal.onnx
pare run -q gpt.st --input x.npy --oracle 8 --backend onnx:gpt.onnx 2>&1 | sed 's/: exec node.*//'
pare run -q gpt.st --input x.npy --oracle 16 --backend onnx:none.onnx; echo "exit $?"
