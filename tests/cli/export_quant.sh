# Quantized models as ONNX: integers stay integers, and ONNX Runtime and numpy compute what pare does.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
exec 2>&1
runtime=$PARE_ROOT/build/peers
[ -d $runtime/node_modules/onnxruntime-node ] && command -v node >/dev/null || runtime=
try() { # MODEL, what
    $python -c "
import numpy as np
np.save('x.npy', np.random.default_rng(7).integers(0, 30, (1, 9)))"
    pare export -q -f $1 -o m.onnx | sed -nE 's/.*(opset [0-9]+).*/\1/p' | tr '\n' ' '
    pare run -q -f $1 --input x.npy -o z.npy >/dev/null
    $python $PARE_ROOT/tests/peers/onnx_numpy.py m.onnx x.npy y.npy && cp y.npy r.npy
    [ -z "$runtime" ] || node $PARE_ROOT/tests/peers/onnx.js $runtime m.onnx x.npy r.npy
    $python -c "
import os
import numpy as np
y, r, z = np.load('y.npy'), np.load('r.npy'), np.load('z.npy')
print('$2:', *('agrees' if abs(v - z).max() <= 1e-5 * abs(z).max() else abs(v - z).max() for v in (y, r)),
      'smaller' if os.path.getsize('m.onnx') < $3 * os.path.getsize('plain.onnx') else 'NOT SMALLER')"
}
both() { # KIND SHARE HOW...
    kind=$1 share=$2; shift 2
    pare data model -q -f -o $kind.st --kind $kind --dim 48 --heads 3 --layers 2 --context 12 --vocab 30
    pare export -q -f $kind.st -o plain.onnx >/dev/null
    for how in "$@"; do
        pare quant $kind.st $how -q -f -o q.st >/dev/null && try q.st "$kind $how" $share
    done
}
both gpt 0.62 "--bits 8" "--bits 6 --affine --group 20" "--bits 5 --group 0"
both gpt 0.5 "--bits 4" "--bits 3 --affine --group 20" "--bits 2 --group 0" "--bits 4 --embedding-bits 8"
both llama 0.5 "--bits 4 --embedding-bits 8"
both bert 0.62 "--bits 8"
# After other cuts: a norm folded away, a narrower model, an attention that is gone, a mean.
pare data random -q --count 40 --tokens 9 --vocab 30 -o t.npy
pare fold bert.st -q -o f.st >/dev/null && pare width f.st --data t.npy --keep 80% -q -o w.st >/dev/null
pare depth w.st --data t.npy --kind uniform --layers 1 -q -o d.st >/dev/null; pare quant d.st --bits 4 --data t.npy -q -o q2.st >/dev/null
pare export -q -f d.st -o plain.onnx >/dev/null; try q2.st "bert after fold, width and depth" 0.6
