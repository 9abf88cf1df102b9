# Encoders of texts run by ONNX Runtime: every pooling, with and without outputs of length 1, and a narrower one, which
# ends with a dense layer.
. $PARE_ROOT/tests/cli/onnx_ort.inc
for p in first mean max last; do
    for n in "" --normalize; do
        pare data model -q --kind bert --pool $p $n --dim 16 --layers 2 --heads 2 --context 32 -o $p$n.st && try $p$n.st ids 12 256
    done
done
pare data random -q --count 60 --tokens 9 -o i.npy
pare width last--normalize.st --data i.npy --keep 0.8 -q -o narrow.st >/dev/null && try narrow.st ids 12 256
