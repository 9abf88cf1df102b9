# Whole models run by ONNX Runtime, to 1e-5 of what pare gives, and seen by onnx's own checker.
python=/usr/bin/python3
peers=$PARE_ROOT/build/peers
command -v node >/dev/null || { echo "SKIP needs node"; exit 77; }
[ -d $peers/node_modules/onnxruntime-node ] || { echo "SKIP needs onnxruntime-node: make setup-bench"; exit 77; }
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
[ -n "$SHARED" ] || { echo "SKIP needs ../shared"; exit 77; }
exec 2>&1
try() { # MODEL ids|x TOKENS VALUES
    rm -f m.onnx x.npy y.npy z.npy
    $python -c "
import numpy as np
r = np.random.default_rng(7)
np.save('x.npy', r.integers(0, $4, (2, $3)) if '$2' == 'ids' else r.normal(size=(1, $3, $4)).astype('f4'))"
    pare export -q $1 -o m.onnx >/dev/null && node $PARE_ROOT/tests/peers/onnx.js $peers m.onnx x.npy y.npy &&
        pare run -q $1 --input x.npy -o z.npy >/dev/null && $python -c "
import numpy as np
y, z = np.load('y.npy'), np.load('z.npy')
print('$(basename $1)', y.shape, 'agrees' if abs(y - z).max() <= 1e-5 * abs(z).max() else abs(y - z).max())
try:
    import onnx
    onnx.checker.check_model(onnx.load('m.onnx'), full_check=True)
except ImportError:
    pass"
}
d=$SHARED/data/models
try $d/stories260K.safetensors ids 512 512
try $d/bert_sst_3layer.safetensors ids 60 2000
try $d/gpt_nano_sort.safetensors ids 11 3
try $d/moonshine_tiny_encoder.safetensors x 100 288
try $PARE_ROOT/models/sort.safetensors ids 11 3
