# What a model is, for each kind; equal blocks are told once.
m() { pare data model -q -o "$@"; }
m gpt.st --dim 32 --layers 3
m llama.st --kind llama --dim 32
m bert.st --kind bert --dim 32 --classes 3
m graph.st --kind graph --dim 32
for k in gpt llama bert graph; do pare info $k.st | sed '/^bytes/d'; echo; done
pare info graph.st --tokens 10 --edges 30 | grep MACs
pare info gpt.st --tokens=1 | grep MACs
pare info -- gpt.st | head -n 1
pare info gpt.st -v | sed -nE '/^tensors/,$s/[0-9a-f]{64}/HASH/p' | head -n 4
pare info gpt.st --json | grep -oE '^.{21}|"(parameters|bytes|macs|tokens|context|vocab)": [0-9]+|"heads": 4'
pare info gpt.st --json -v | grep -o '"name": "[a-z0-9._]*", "dtype": "F32", "shape": [^]]*], "sha256": "[0-9a-f]*"' | wc -l
pare info gpt.st --json | wc -l
[ "$(pare info gpt.st --json | grep -o '[0-9a-f]\{64\}')" = "$(sha256sum <gpt.st | cut -c 1-64)" ] && echo same hash
pare info gpt.st | grep -c "$(printf '\033')"
pare info gpt.st >/dev/full; echo "full disk: exit $?"
echo "-- an activation of the head is shown also without a dense layer; a missing tensor says its shape"
without() { python3 - "$@" <<'END'
import hashlib, json, struct, sys
source, target, *gone = sys.argv[1:]
data = open(source, "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head, body = json.loads(data[8:8 + n]), data[8 + n:]
head["__metadata__"]["pare.sha256"] = "0" * 64
out, at = {"__metadata__": head.pop("__metadata__")}, 0
kept = b""
for name, t in head.items():
    if name in gone: continue
    b, e = t["data_offsets"]
    kept += body[b:e]
    out[name] = {**t, "data_offsets": [at, at + e - b]}
    at += e - b
text = json.dumps(out).encode()
text += b" " * (-len(text) % 8)
text = text.replace(b"0" * 64, hashlib.sha256(text).hexdigest().encode(), 1)
open(target, "wb").write(struct.pack("<Q", len(text)) + text + kept)
END
}
without bert.st act.st head.dense.weight head.dense.bias
pare info act.st | grep '^head'
m small.st --dim 4 --heads 2 --layers 1
for t in wq wk wv; do
    without small.st no.st blocks.0.attn.$t blocks.0.attn.b${t#w}
    pare info no.st 2>&1; echo "exit $?"
done
