# Real models before and after each cut, run by ONNX Runtime.
[ -n "$SHARED" ] || { echo "SKIP needs ../shared"; exit 77; }
. $PARE_ROOT/tests/cli/onnx_ort.inc
d=$SHARED/data/models
pare data sort --count 40 --length 6 --symbols 3 --seed 1 -q -o sort.npz
echo "-- gpt_nano_sort"
after_each_cut $d/gpt_nano_sort.safetensors 11 3 sort.npz
echo "-- stories260K"
pare data random --count 16 --tokens 32 --vocab 512 --seed 1 -q -o stories.npy
after_each_cut $d/stories260K.safetensors 64 512 stories.npy
echo "-- bert_sst"
pare data random --count 16 --tokens 32 --vocab 2000 --seed 1 -q -o bert.npy
after_each_cut $d/bert_sst_3layer.safetensors 60 2000 bert.npy 0.95
