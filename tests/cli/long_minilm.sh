# all-MiniLM-L6-v2 in f16: the same rows as a pass of numpy in f64 over the same weights, and as ONNX
# Runtime gives for the published f32 file; sentences embedded as ONNX Runtime embeds them.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
command -v node >/dev/null || { echo "SKIP needs node"; exit 77; }
models=$($PARE_ROOT/tools/get-models minilm minilm-onnx onnxruntime) || { echo "$models" | grep SKIP; exit 77; }
{ read -r model; read -r onnx; read -r runtime; } <<<"$models"
peer="$python $PARE_ROOT/tests/peers/minilm.py"
ort() { node $PARE_ROOT/tests/peers/onnx.js $runtime $onnx "$@"; }
mkdir m && $peer make $model m
pare run -q m/rows --input m/ids.npy -o m/pare32.npy >/dev/null
pare run -q m/rows --input m/ids.npy --f64 -o m/pare64.npy >/dev/null
ort m/ids.npy m/ort.npy
$peer compare m
$peer words $model m
pare run -q $model --pool mean --normalize --data m/s.tsv -o m/s.npy >/dev/null
ort $(for x in m/s/*.npy; do echo $x ${x%.npy}.ort.npy; done)
$peer cosines m
