# ONNX files: looked at and evaluated by a small reader in numpy, against the f64 pass.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
exec 2>&1
onnx=$PARE_ROOT/tests/peers/onnx_numpy.py
agrees() { # MODEL INPUT
    rm -f m.onnx y.npy z.npy
    pare export -q $1 -o m.onnx >/dev/null && $python $onnx m.onnx $2 y.npy &&
        pare run -q $1 --f64 --input $2 -o z.npy >/dev/null && $python -c '
import numpy as np
y, z = np.load("y.npy"), np.load("z.npy")
print(y.shape, "agrees" if abs(y - z).max() <= 1e-6 * abs(z).max() else abs(y - z).max())'
}
for k in gpt llama bert; do
    pare data model -q --kind $k --dim 16 --heads 2 --layers 2 --context 12 -o $k.st >/dev/null
done
pare export gpt.st -o gpt.onnx
$python $onnx gpt.onnx
pare data random -q --count 2 --tokens 9 -o ids.npy
for k in gpt llama bert; do echo "$k: $(agrees $k.st ids.npy)"; done
echo "-- what may stand in the place of attention"
for i in {1..40}; do printf 'line %d says as much as the one before it\n' $i; done >text.txt
for k in zero const uniform constq linear affmix pool; do
    pare depth -q gpt.st --data text.txt --fit-tokens 12 --windows 8 --kind $k --exact 0 -f -o cut.st >/dev/null
    echo "$k: $(agrees cut.st ids.npy)"
done
pare depth -q bert.st --kind meanq --exact 0 -f -o cut.st >/dev/null
echo "meanq: $(agrees cut.st ids.npy)"
echo "-- one engine for all calls"
pare export gpt.st --oracle 8 --batch 3 -o e.onnx
$python $onnx e.onnx
pare export gpt.st --oracle 8 --causal -q -f -o e.onnx
$python $onnx e.onnx
echo "-- Hugging Face's names"
for k in gpt llama bert; do
    pare export -q $k.st -o hf-$k
    pare run -q $k.st --f64 --input ids.npy -f -o y.npy >/dev/null
    pare run -q hf-$k --f64 --input ids.npy -f -o z.npy >/dev/null
    $python -c '
import numpy as np
y, z = np.load("y.npy"), np.load("z.npy")
print("agrees" if abs(y - z).max() <= 1e-6 * abs(z).max() else abs(y - z).max())'
done
cat hf-llama/config.json
echo "-- refused"
pare export cut.st -o hf-cut; echo "exit $?"
pare export gpt.st -o hf-gpt; echo "exit $?"
pare export -q -f gpt.st -o hf-gpt >/dev/null; echo "exit $?"
sha256sum hf-gpt/* hf-llama/* >before
for o in "hf-gpt -f -o hf-gpt" "hf-gpt -f -o ./hf-gpt/" "hf-gpt/model.safetensors -f -o hf-gpt" \
    "gpt.st -o -" "gpt.st -o x.safetensors" "gpt.st -f -o hf-gpt/config.json" "gpt.st -o nowhere/hf"; do
    echo "$o:"; pare export $o | head -1
done
sha256sum --quiet -c before
pare export gpt.st -q -o hf-slash/ | head -1
pare export gpt.st --oracle 8 -o engine | head -1
pare data model -q --kind graph --dim 8 --heads 2 --layers 1 -o g.st >/dev/null
pare export g.st -o g.onnx; echo "exit $?"
pare export gpt.st -o gpt.onnx; echo "exit $?"
pare export gpt.st --oracle 1 -o x.onnx; echo "exit $?"
pare export gpt.st --causal -o x.onnx | head -1
pare export gpt.st --batch 0 -o x.onnx | head -1
pare export none.st -o x.onnx; echo "exit $?"
pare export gpt.st -o nowhere/x.onnx; echo "exit $?"
ls -d *.onnx hf-* engine* 2>/dev/null
