# A cut of a Hugging Face folder: where it goes, what is refused and why, its certificate inside.
exec 2>&1
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind bert --dim 16 --heads 2 --layers 3 --ffn 32 --context 12 -o b.st
pare export -q b.st -o b/ >/dev/null
echo '{"model_max_length": 12}' >b/tokenizer_config.json
pare data random -q --model b --count 40 --tokens 8 -o ids.npy 2>/dev/null || pare data random -q --count 40 --tokens 8 -o ids.npy
cut="pare width -q b --pool mean --normalize --data ids.npy --prove 2 --fit-tokens 8"
echo "-- by its name"
$cut --ffn-dim 20 -o cut/ | tail -2
ls cut cut/1_Pooling
grep intermediate_size cut/config.json
cmp b/tokenizer_config.json cut/tokenizer_config.json && echo copied
$cut --keep 90% -o other | tail -2
$cut --keep 90% -o other.safetensors | tail -2
echo "-- it exists"
$cut --ffn-dim 16 -o cut/; echo "exit $?"
$cut --ffn-dim 16 -f -o cut/ | tail -1
grep intermediate_size cut/config.json
mkdir -p notes/more && $cut --ffn-dim 16 -f -o notes/; echo "exit $?"
$cut --ffn-dim 16 -f -o b/; echo "exit $?"
$cut --ffn-dim 16 -f -o b/../b/ | head -1
echo "-- its certificate"
pare verify cut | grep -E 'verdict|output'
mv cut moved && pare verify moved | grep -E 'verdict|output'
sed -i 's/"layer_norm_eps": [^,]*/"layer_norm_eps": 0.25/' moved/config.json
pare verify moved | tail -1; echo "exit $?"
pare run -q other --input ids.npy -o y.npy >/dev/null && echo runs
pare fold -q b --any-shape -o folded.safetensors | tail -1
echo "-- what no config can express"
for o in "width --qk-dim 4" "width --v-dim 4" "width --method slice --dim 8" "width --keep 1%" \
    "depth --layers 2" "depth --exact 0 --kind uniform" "ticket --bits 8"; do
    set -- $o; command=$1; shift
    data="--data ids.npy"; [ $command = ticket ] && data=
    echo "$o:"; pare $command -q b --pool mean --normalize $data "$@" -o no/ | head -1
done
$cut --qk-dim 4 --any-shape -o no/ | head -1
$cut --qk-dim 4 --any-shape -o any.safetensors | tail -1
pare width -q b.st --data ids.npy --ffn-dim 20 -o no/ | head -1
plan="pare plan -q b --pool mean --normalize --data ids.npy --prove 2"
$plan --max-bytes 33k --directions width,ticket -o no/ | head -1
$plan --max-bytes 33k --any-shape -o no/ | head -1
pare plan -q b.st --data ids.npy --max-bytes 33k -o no/ | head -1
$plan --max-bytes 9k -o no/ | grep -c ' --layers'; ls -d no
echo "-- a fold"
pare fold -q b --pool mean --normalize --data ids.npy --prove 2 -o fold/ | grep -E '^(cut|model|certificate)'
cmp b/config.json fold/config.json && pare verify -v -q fold | grep -E '^hypothesis.*(folded|not rotary)'
pare fold -q fold --data ids.npy --prove 2 -o twice/; echo "exit $?"; ls -d twice
echo "-- a plan"
$plan --max-bytes 33k --json -o plan/ >plan.json
python3 - <<'PY'
import json, os
p, cert = json.load(open("plan.json")), json.load(open("plan/pare.cert.json"))
chosen = next(t for t in p["tries"] if t["cut"] == p["chosen"])
read = list(cert["output"]["files"])
there = sum(os.path.getsize("plan/" + f) for f in read)
print(len(p["chosen"].split(",")), "steps", cert["reduction"]["name"], cert["input"]["path"], len(read), "files")
print(chosen["bytes"] == there == p["output"]["file_bytes"], there < 33000, p["input"]["file_bytes"])
config = json.load(open("plan/config.json"))
print({k: config[k] for k in ("num_hidden_layers", "intermediate_size")})
PY
pare verify -q plan | head -1 | cut -c1-50
mv plan moved-plan; pare verify -q moved-plan | head -1 | cut -c1-50
cp -r moved-plan before; $plan --max-bytes 9k -f -o moved-plan/ >/dev/null; echo "exit $?"
diff -r before moved-plan && echo "as it was"
$plan --max-bytes 40k -f -o moved-plan/ | tail -2
$plan --max-bytes 30k --any-shape --directions width,depth -o any.st | tail -2
pare verify -q any.st.chain.cert.json | head -1 | cut -c1-50
echo "-- uncut"
pare import -q b --pool mean --normalize -o same/
cmp b/model.safetensors same/model.safetensors && cmp b/config.json same/config.json && ls same
pare import -q b.st -o no/ | head -1
ls
