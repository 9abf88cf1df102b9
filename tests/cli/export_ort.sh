# Whole models run by ONNX Runtime, to 1e-5 of what pare gives, and seen by onnx's own checker.
[ -n "$SHARED" ] || { echo "SKIP needs ../shared"; exit 77; }
. $PARE_ROOT/tests/cli/onnx_ort.inc
d=$SHARED/data/models
try $d/stories260K.safetensors ids 512 512
try $d/bert_sst_3layer.safetensors ids 60 2000
try $d/gpt_nano_sort.safetensors ids 11 3
try $d/moonshine_tiny_encoder.safetensors x 100 288
try $PARE_ROOT/models/sort.safetensors ids 11 3
# Tokens that share a row: the map before the embedding and behind a tied head.
for kind in gpt llama; do
    pare data model -qf -o $kind.st --kind $kind --dim 16 --heads 2 --layers 2 --context 8
    pare fold $kind.st --share-rows --distance 1.2 -q -o $kind.shared >/dev/null && try $kind.shared ids 8 256
done
