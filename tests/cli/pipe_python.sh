# Whole models by the Python client of examples/pipe, in f32 and f64.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
exec 2>&1
pare data model -q --kind gpt --dim 16 --heads 2 --layers 2 --context 60 -o gpt.st >/dev/null
pare data model -q --kind bert --dim 16 --heads 2 --layers 2 --context 60 -o bert.st >/dev/null
pare data random -q --count 2 --tokens 60 -o x.npy
try() { # MODEL TOLERANCE WORDS...
    rm -f y.npy z.npy
    m=$1 t=$2; shift 2
    pare run -q $m --input x.npy $f64 -o z.npy >/dev/null
    pare run -q $m --input x.npy $f64 "$@" -o y.npy >out || { cat out; return; }
    $python -c "
import numpy as np
y, z = np.load('y.npy'), np.load('z.npy')
print('$m', 'agrees' if abs(y - z).max() <= $t * abs(z).max() else abs(y - z).max())"
}
for f64 in "" --f64; do
    t=1e-5
    [ -z "$f64" ] || t=1e-13
    try gpt.st $t --oracle 16 --backend "pipe:$python $PARE_ROOT/examples/pipe/attention.py"
    try bert.st $t --oracle 16 --backend "pipe:$python $PARE_ROOT/examples/pipe/attention.py"
done
