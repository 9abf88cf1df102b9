# A GPT-2-small-shaped file (124 M parameters, Hugging Face names, random weights) goes through
# import, info, run, fold, width (slice, then the default method) and verify, each within 3 times the
# file in memory. About 15 minutes of processor time.
/usr/bin/python3 - <<'PY' || exit $?
import json, os, struct, subprocess, sys, time
try:
    import numpy as np
except ImportError:
    print("SKIP long_gpt2_small: needs numpy"); sys.exit(77)
D, L, V, T = 768, 12, 50257, 1024
shapes = {"wte.weight": (V, D), "wpe.weight": (T, D), "ln_f.weight": (D,), "ln_f.bias": (D,)}
for i in range(L):
    for name, shape in {"ln_1.weight": (D,), "ln_1.bias": (D,), "attn.c_attn.weight": (D, 3 * D),
                        "attn.c_attn.bias": (3 * D,), "attn.c_proj.weight": (D, D),
                        "attn.c_proj.bias": (D,), "ln_2.weight": (D,), "ln_2.bias": (D,),
                        "mlp.c_fc.weight": (D, 4 * D), "mlp.c_fc.bias": (4 * D,),
                        "mlp.c_proj.weight": (4 * D, D), "mlp.c_proj.bias": (D,)}.items():
        shapes[f"h.{i}.{name}"] = shape
rng = np.random.default_rng(0)
header, at = {}, 0
for name, shape in shapes.items():
    n = 4 * int(np.prod(shape))
    header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + n]}
    at += n
text = json.dumps(header).encode()
os.mkdir("gpt2")
with open("gpt2/model.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text)
    for name, shape in shapes.items():
        w = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        f.write((w + 1 if "ln_" in name and name.endswith("weight") else w).tobytes())
with open("gpt2/config.json", "w") as f:
    json.dump({"model_type": "gpt2", "n_head": 12, "n_layer": L, "n_embd": D, "n_ctx": T, "n_positions": T,
               "vocab_size": V, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}, f)
np.save("ids.npy", rng.integers(0, V, 64))
np.save("many.npy", rng.integers(0, V, (12, 64)))
LIMIT = 3
limit = LIMIT * os.path.getsize("gpt2/model.safetensors")
for args in (["import", "gpt2", "-o", "g.safetensors"], ["info", "g.safetensors"],
             ["run", "g.safetensors", "--input", "ids.npy", "-o", "y.npy"],
             ["fold", "g.safetensors", "--data", "many.npy", "-o", "f.safetensors"], ["verify", "f.safetensors.cert.json"],
             ["width", "g.safetensors", "--method", "slice", "--keep", "0.75", "--data", "many.npy", "-o", "w.safetensors"],
             ["verify", "w.safetensors.cert.json"],
             ["width", "g.safetensors", "--keep", "0.75", "--data", "many.npy", "-o", "a.safetensors"],
             ["verify", "a.safetensors.cert.json"]):
    start = time.time()
    p = subprocess.Popen(["pare", *args, "-q"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    peak = usage.ru_maxrss * 1024
    print(args[0], "exit", os.waitstatus_to_exitcode(status), "memory",
          f"within {LIMIT} times the file" if peak <= limit else f"{peak / limit * LIMIT:.2f} times the file")
    print(f"{args[0]}: {peak / limit * LIMIT:.2f} times the file, {time.time() - start:.0f} s", file=sys.stderr)
PY
