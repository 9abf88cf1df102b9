# Small random Hugging Face folders of every family, as PyTorch computes them: to 1e-4 of the largest
# entry in f32, to 1e-10 in f64.
python=/usr/bin/python3
$python -c 'import numpy, torch' 2>/dev/null || { echo "SKIP needs torch"; exit 77; }
mkdir f && $python $PARE_ROOT/tests/peers/families.py make f >cases || { cat cases; exit 1; }
while read -r name told; do
    pare run -q f/$name $told --input f/$name.x.npy -o f/$name.f32.npy 2>&1 >/dev/null
    pare run -q f/$name $told --input f/$name.x.npy --f64 -o f/$name.f64.npy 2>&1 >/dev/null
done <cases
$python $PARE_ROOT/tests/peers/families_torch.py f <cases
