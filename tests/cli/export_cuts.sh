# The bundled model before and after each cut, run by ONNX Runtime.
. $PARE_ROOT/tests/cli/onnx_ort.inc
pare data sort --count 40 --length 6 --symbols 3 --seed 1 -q -o sort.npz
after_each_cut $PARE_ROOT/models/sort.safetensors 11 3 sort.npz
