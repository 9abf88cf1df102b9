# A cut is stored in the precision of its input, or in that of --dtype, and is smaller than what came
# in, or nothing is written.
exec 2>&1
python=/usr/bin/python3
types() { # FILE...: bytes of the tensors of each type
    $python - "$@" <<'END'
import json, struct, sys
for path in sys.argv[1:]:
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    sums = {}
    for name, t in json.loads(b[8:8 + n]).items():
        if name in ("__metadata__", "vocab"): continue
        sums[t["dtype"]] = sums.get(t["dtype"], 0) + t["data_offsets"][1] - t["data_offsets"][0]
    print(path + ":", ", ".join(f"{k} {v}" for k, v in sorted(sums.items())))
END
}
for i in {1..60}; do printf 'line %d says as much as the one before it\n' $i; done >t.txt
pare data model -q --kind gpt --dim 16 --heads 2 --layers 2 --context 12 -o m.st >/dev/null

echo "-- each precision, and every cut of it"
for t in f16 bf16 f32 f64; do
    pare import -q m.st --dtype $t -o $t.st >/dev/null
    pare import -q $t.st -o again.st >/dev/null && cmp $t.st again.st && rm again.st
    pare width -q $t.st --data t.txt --keep 75% --prove 4 -t 1 -o $t.width.st >/dev/null
    pare width -q $t.st --data t.txt --keep 75% --prove 4 -t 2 -o other.st >/dev/null
    cmp $t.width.st other.st && rm other.st*
    pare depth -q $t.st --data t.txt --layers 1 --kind zero --prove 4 -o $t.depth.st >/dev/null
    pare ticket -q $t.st --bits 6 -o $t.ticket.st >/dev/null
    types $t.st $t.width.st $t.depth.st $t.ticket.st
    for cut in width depth ticket; do
        [ $(stat -c %s $t.$cut.st) -lt $(stat -c %s $t.st) ] || echo "$t.$cut.st is not smaller"
        pare verify -q $t.$cut.st.cert.json >/dev/null || echo "$t.$cut.st is not verified"
    done
done
echo "-- rounded to another one: the rounding is inside what is certified"
proven() { $python -c 'import json, sys; print(json.load(open(sys.argv[1]))["headline"]["proven"])' $1; }
pare depth -q f32.st --data t.txt --layers 1 --kind zero --prove 4 --dtype f16 -o d16.st >/dev/null
pare fold -q f32.st -o fold.st >/dev/null
pare fold -q f32.st --dtype bf16 -o fold.bf16.st >/dev/null
types d16.st fold.st fold.bf16.st
$python -c "print('bf16 costs at least 100 times as much:', $(proven fold.bf16.st.cert.json) > 100 * $(proven fold.st.cert.json))"
pare plan -q f32.st --data t.txt --max-bytes 26k --directions depth --dtype f16 --prove 4 -o p.st >/dev/null
types p.st

echo "-- not smaller: nothing is written"
refused() { # nothing is left of it
    pare "$@" -o no.st
    echo "exit $?"
    ls | grep '^no\.' && rm no.*
}
refused width f16.st --data t.txt --keep 75% --dtype f64
pare width -q f16.st --data t.txt --keep 1 --prove 4 -o bare.st >/dev/null # key biases go
types bare.st
refused width bare.st --data t.txt --keep 1
refused width bare.st --data t.txt --method slice --dim 16
refused width bare.st --data t.txt --ffn-dim 64
refused depth f16.st --layers 2
refused depth f16.st --data t.txt --exact 0,1
refused ticket f16.st --bits 20
pare width -q f16.st --data t.txt --keep 75% --dtype f64 --prove 4 --allow-larger -o yes.st >/dev/null
echo "exit $?"
types yes.st
echo "-- conversions and folds are written, and say so"
pare import f16.st --dtype f32 -o wide.st | grep larger
pare fold -q f16.st -o f16.fold.st >/dev/null
types wide.st f16.fold.st
pare export f16.st -o hf-gpt | grep wrote
pare export f32.st --dtype f16 -o hf-gpt16 | grep wrote
cmp hf-gpt/model.safetensors hf-gpt16/model.safetensors && types hf-gpt/model.safetensors
grep torch_dtype hf-gpt/config.json
pare export f32.st --dtype f16 -o m.onnx | head -1

echo "-- a number that f16 does not have"
$python - f32.st large.st <<'END'
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
at = 8 + struct.unpack("<Q", b[:8])[0]
b[at:at + 4] = struct.pack("<f", 1e5)
open(sys.argv[2], "wb").write(b)
END
refused import large.st --dtype f16
refused depth large.st --data t.txt --layers 1 --kind zero --dtype f16
refused import m.st --dtype f8
