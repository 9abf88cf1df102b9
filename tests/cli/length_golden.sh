# Three golden models of an independent numpy implementation, run directly and through engines.
golden=$PARE_ROOT/../shared/reference/length/golden
[ -e "$golden/manifest.json" ] || { echo "SKIP needs ../shared"; exit 77; }
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
cat >write.py <<'END'
import hashlib, json, os, struct, sys
import numpy as np
golden = sys.argv[1]
def array(at):
    return np.fromfile(os.path.join(golden, at["file"]), "<f8").reshape(at["shape"])
def save(path, arch, tensors):
    header, data, zeros = {"__metadata__": {"pare": json.dumps(arch), "pare.sha256": "0" * 64}}, b"", "0" * 64
    for name, v in tensors.items():
        header[name] = {"dtype": "F64", "shape": list(v.shape), "data_offsets": [len(data), len(data) + v.nbytes]}
        data += np.ascontiguousarray(v).tobytes()
    text = json.dumps(header)
    text = text.replace(zeros, hashlib.sha256(text.encode()).hexdigest())
    open(path, "wb").write(struct.pack("<Q", len(text)) + text.encode() + data)
for m in json.load(open(golden + "/manifest.json")):
    if m["kind"] != "model":
        continue
    d, dh, mask = m["d"], m["dh"], m["mask"]
    skip = "identity" if m["residual"] else "none"
    norm = {} if m["norm"] == "none" else {"in_norm": {"kind": m["norm"], "eps": m["norm_eps"], "divisor": d}}
    pattern = {"kind": "window" if mask[0] in ("window", "sink") else mask[0]}
    if len(mask) > 1:
        pattern.update(window=mask[1], sinks=mask[2] if len(mask) > 2 else 0)
    blocks, tensors = [], {}
    for i, layer in enumerate(m["layers"]):
        heads = layer["heads"]
        blocks.append({"attention": {"kind": "exact", "in": d, "out": d, "skip": skip, **norm,
                                "heads": [{"dk": dh, "dv": dh, "q": h * dh, "k": h * dh, "v": h * dh,
                                           "o": h * dh, "scale": 1.0} for h in range(len(heads))]},
                       "ffn": {"kind": "mlp", "in": d, "out": d, "layers": 2, "activation": m["act"], "skip": skip, **norm}})
        for k in "qkv":
            tensors[f"blocks.{i}.attn.w{k}"] = np.concatenate([array(h["W" + k]).T for h in heads])
        tensors[f"blocks.{i}.attn.wo"] = np.concatenate([array(h["Wo"]) for h in heads]).T
        for l in (1, 2):
            tensors[f"blocks.{i}.ffn.{l - 1}.weight"] = array(layer[f"W{l}"]).T
            tensors[f"blocks.{i}.ffn.{l - 1}.bias"] = array(layer[f"b{l}"]).reshape(-1)
    arch = {"version": 2, "name": m["id"], "context": 0, "embedding": {"ids": False, "width": d}, "pattern": pattern,
            "blocks": blocks, "head": {"pool": "none", "tied": False}}
    save(m["id"] + ".st", arch, tensors)
    np.save(m["id"] + ".x.npy", array(m["X"]))
    np.save(m["id"] + ".want.npy", array(m["Y"]))
END
$python write.py "$golden"
ls *.st
for m in model0 model1 model2; do
    for w in "" "--oracle 8 --mode native" "--oracle 8 --mode zeroref" "--oracle 8 --backend paper"; do
        pare run -q $m.st --input $m.x.npy --f64 $w -f -o y.npy >out || cat out
        echo "$m $w: $($python -c '
import numpy as np, sys
y, want = np.load("y.npy"), np.load(sys.argv[1])
off = abs(y - want).max()
print("agrees to 1e-12" if y.shape == want.shape and off <= 1e-12 else off)' $m.want.npy)"
    done
done
