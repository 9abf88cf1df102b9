# stories15M, a trained Llama: the logits of llama2.c's arithmetic, done in numpy in f32.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
model=$($PARE_ROOT/tools/get-models stories15M) || { echo "$model" | grep SKIP; exit 77; }
peer="$python $PARE_ROOT/tests/peers/stories.py"
$peer $model x.npy y.npy
pare run -q $model --input x.npy -o z.npy >/dev/null
pare run -q $model --input x.npy --f64 -o z64.npy >/dev/null
$peer compare y.npy z.npy
$peer compare y.npy z64.npy
