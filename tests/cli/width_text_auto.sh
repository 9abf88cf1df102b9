# auto of models with norms, positions and ids: what is left, the proof, what it refuses.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model --kind llama --dim 16 --layers 2 --context 32 -q -o l.safetensors
pare data random --count 12 --tokens 32 -q -o ids.npy
pare width l.safetensors --data ids.npy --keep 0.8 -q -o l80.safetensors |
    grep -E '^proven |^ +on ' | digits
pare verify l80.safetensors.cert.json | grep -oE '^verdict +[A-Z]+'
pare width l.safetensors --data ids.npy --v-dim 2 --ffn-dim 20 -q -o l2.safetensors | grep -A 2 '^cut'
pare width l.safetensors --data ids.npy --qk-dim 2 --v-dim 3 -q -o q2.safetensors | grep -A 2 '^cut'
echo "-- queries and keys alone"
pare width l.safetensors --data ids.npy --method qk --qk-dim 2 -q -o k2.safetensors | grep -E '^(cut|proven) |^ +on |^ {13}.* -> ' | digits
pare verify k2.safetensors.cert.json | grep -oE '^verdict +[A-Z]+'
pare width l.safetensors --data ids.npy --method qk --keep 0.98 -q -o k98.safetensors >/dev/null
pare verify k98.safetensors.cert.json | grep -oE '^verdict +[A-Z]+'
echo "-- refused"
pare width l.safetensors --data ids.npy --method qk --qk-dim 1 -q -o no.safetensors 2>&1
echo "exit $?"
pare width l.safetensors --data ids.npy --method qk --ffn-dim 8 -q -o no.safetensors 2>&1
echo "exit $?"
pare width l.safetensors --data ids.npy --keep 0.8 --v-dim 2 -q -o no.safetensors 2>&1
echo "exit $?"
pare width l.safetensors --data ids.npy --dim 8 -q -o no.safetensors 2>&1
echo "exit $?"
pare width l.safetensors --data ids.npy --keep 0.1 -q -o no.safetensors 2>&1
echo "exit $?"
pare width l.safetensors --data ids.npy --keep 0.8 --edits -q -o no.safetensors 2>&1
echo "exit $?"
pare width l.safetensors --keep 0.8 -q -o no.safetensors 2>&1
echo "exit $?"
ls no.safetensors* 2>/dev/null | wc -l
