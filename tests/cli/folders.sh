# A cut of a Hugging Face folder is a folder of the same kind, in every family: every file is there,
# config.json has other sizes and nothing else new, every tensor has the name, the shape and the type
# that the config implies, and the network that numpy computes from the papers' formulas gives what
# pare gives. A fold gives what the folder that came in gives, and folding it again finds nothing. An
# uncut folder goes out as it came in.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
peer="$python $PARE_ROOT/tests/peers/families.py"
# Without those whose outputs are one row per token: token arrays are no data for them.
mkdir f && $peer make f | grep -Ev '^act-|^[a-z]*-(rows|tokens) ' >cases
$python -c '
import numpy as np
np.save("d.npy", np.random.default_rng(1).integers(5, 37, (16, 12)))'
while read -r name told; do
    for copy in export import; do
        [ "$told" ] || { pare $copy -q f/$name -o copy/ >/dev/null && diff -r f/$name copy; rm -rf copy; }
    done
    for cut in "narrow width --ffn-dim 24" "short depth --blocks 2" "folded fold"; do
        set -- $cut
        out=f/$name.$1
        pare $2 -q f/$name $told --data d.npy $3 $4 --prove 1 --tokens 4 -o $out/ >/dev/null || continue
        pare run -q $out --input f/$name.x.npy --f64 -o $out.f64.npy >/dev/null
    done
    pare fold -q $out $told --prove 1 --tokens 4 -o again/ 2>again.txt && echo "$name is folded again"
    grep -q "nothing to fold" again.txt || cat again.txt
    grep -A3 '"fold.same"' $out/pare.cert.json | grep -q '"holds": true' || echo "$name: not the fold"
done <cases 2>&1
$peer cut f
