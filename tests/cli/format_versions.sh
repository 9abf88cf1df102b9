# Model files of version 1 (pare 0.1: stem, top, attn, act) are read; version 2 is written; a mix is refused.
exec 2>&1
pare import "$PARE_ROOT/models/sort.safetensors" -q -o new.st >import.txt
cat >versions.py <<'END'
import hashlib, json, struct, sys
OLD = {"embedding": "stem", "head": "top", "attention": "attn", "activation": "act"}
def keys(v, words):
    if isinstance(v, dict):
        return {words.get(k, k): keys(w, words) for k, w in v.items()}
    return [keys(w, words) for w in v] if isinstance(v, list) else v
def read(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    meta = head.pop("__metadata__")
    return json.loads(meta["pare"]), head, meta, data[8 + n:]
def write(path, arch, head, meta, body):
    meta = dict(meta, pare=json.dumps(arch))
    meta["pare.sha256"] = "0" * 64
    text = json.dumps({"__metadata__": meta, **head}).encode()
    text += b" " * (-(len(text) + 8) % 64)
    digest = hashlib.sha256(text).hexdigest().encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text.replace(b"0" * 64, digest) + body)
def old_name(k):
    first, _, rest = k.partition(".")
    return {"embedding": "stem", "head": "top"}.get(first, first) + "." + rest
arch, head, meta, body = read("new.st")
print("written: version", arch["version"], sorted(arch), sorted({k.split(".")[0] for k in head}))
was = read(sys.argv[1])
print("shipped: version", was[0]["version"], sorted(was[0]), sorted({k.split(".")[0] for k in was[1]}))
old = dict(keys(arch, OLD), version=1)
names = {old_name(k): v for k, v in head.items()}
write("old.st", old, names, meta, body)
write("names.st", old, head, meta, body)                          # tensors of version 2
write("keys.st", dict(arch, version=1), names, meta, body)        # keys of version 2
write("both.st", dict(old, version=2), names, meta, body)         # keys of version 1
write("three.st", dict(arch, version=3), head, meta, body)
END
python3 versions.py "$PARE_ROOT/models/sort.safetensors"
for f in "$PARE_ROOT/models/sort.safetensors" old.st; do
    pare info "$f" -v | sed -n '/^tensors/,$p' >tensors
    pare info new.st -v | sed -n '/^tensors/,$p' | cmp - tensors && echo "the same names and numbers"
done
pare import old.st -q -o again.st >import.txt && cmp again.st new.st && echo "the same bytes when written"
for f in names keys both three; do pare info $f.st || echo "exit $?"; done
