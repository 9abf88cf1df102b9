#!/usr/bin/env python3
"""A third opinion on Hugging Face folders: PyTorch in f64, on the folders that families.py makes.

    families_torch.py DIR       for each folder DIR/CASE with DIR/CASE.x.npy: what PyTorch gives for these
                                token ids against CASE.f32.npy and CASE.f64.npy, which pare wrote

It shares no code with families.py nor with pare: a folder is read from its files, layer norm,
attention and activations are those of torch.nn.functional, rotary positions are turned as complex numbers."""
import glob
import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_grad_enabled(False)
TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}


def load(path):
    with open(path, "rb") as f:
        data = bytearray(f.read())
    n = int.from_bytes(data[:8], "little")
    out = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        flat = torch.frombuffer(data[8 + n + begin:8 + n + end], dtype=TYPES[t["dtype"]])
        out[name] = flat.reshape(t["shape"]).double()
    return out


def load_folder(folder):
    """config, tensors without the prefix of the base model, modules."""
    with open(folder + "/config.json", encoding="utf-8") as f:
        config = json.load(f)
    w = {}
    for path in glob.glob(folder + "/*.safetensors"):
        w.update(load(path))
    for prefix in ("bert.", "roberta.", "distilbert.", "transformer.", "model."):
        w = {k[len(prefix):] if k.startswith(prefix) and not k.startswith("transformer.layer") else k: v for k, v in w.items()}
    return config, {k[len("transformer."):] if k.startswith("transformer.") else k: v for k, v in w.items()}


def lin(w, name, x):
    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))


def norm(w, name, x, eps):
    return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], eps)


def rms(w, name, x, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * w[name + ".weight"]


def act_of(name):
    if name in ("gelu_new", "gelu_pytorch_tanh", "gelu_fast"):
        return lambda x: F.gelu(x, approximate="tanh")
    return {"gelu": F.gelu, "gelu_python": F.gelu, "relu": F.relu, "silu": F.silu, "swish": F.silu, "tanh": torch.tanh}[name]


def attend(q, k, v, mask=None, scale=None):
    """[batch, head, token, dim]; mask: true where a token is seen. The function scales by 1/sqrt(dim)."""
    if scale is not None:
        q = q * (scale * math.sqrt(q.shape[-1]))
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return F._scaled_dot_product_attention(q, k, v, attn_mask=mask)[0]  # before version 2


def heads(x, n):
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


def encoder(c, w, ids):
    distil, eps = c["model_type"] == "distilbert", c.get("layer_norm_eps", 1e-12)
    n, act = c.get("n_heads") or c["num_attention_heads"], act_of(c.get("activation") or c["hidden_act"])
    begin = c["pad_token_id"] + 1 if "roberta" in c["model_type"] else 0
    x = F.embedding(ids, w["embeddings.word_embeddings.weight"])
    x = x + w["embeddings.position_embeddings.weight"][torch.arange(begin, begin + ids.shape[1])]
    if not distil:
        x = x + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(w, "embeddings.LayerNorm", x, eps)
    names = ("layer.{}.", "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm",
             "ffn.lin1", "ffn.lin2", "output_layer_norm") if distil else (
                 "encoder.layer.{}.", "attention.self.query", "attention.self.key", "attention.self.value",
                 "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
                 "output.LayerNorm")
    for l in range(c.get("n_layers") or c["num_hidden_layers"]):
        q, k, v, o, n1, up, down, n2 = (names[0].format(l) + s for s in names[1:])
        y = joined(attend(heads(lin(w, q, x), n), heads(lin(w, k, x), n), heads(lin(w, v, x), n)))
        x = norm(w, n1, x + lin(w, o, y), eps)
        x = norm(w, n2, x + lin(w, down, act(lin(w, up, x))), eps)
    return x


def encoder_output(c, w, x):
    words, eps = w["embeddings.word_embeddings.weight"], c.get("layer_norm_eps", 1e-12)
    for dense, ln, bias, act in (
            ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias", None),
            ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias", None),
            ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "gelu")):
        if dense + ".weight" in w:
            act = act_of(act or c.get("activation") or c["hidden_act"])
            return F.linear(norm(w, ln, act(lin(w, dense, x)), eps), words, w[bias])
    first = x[:, 0]
    if "classifier.out_proj.weight" in w:
        return lin(w, "classifier.out_proj", torch.tanh(lin(w, "classifier.dense", first)))
    if "pre_classifier.weight" in w:
        return lin(w, "classifier", F.relu(lin(w, "pre_classifier", first)))
    if "pooler.dense.weight" in w:
        first = torch.tanh(lin(w, "pooler.dense", first))
        return lin(w, "classifier", first) if "classifier.weight" in w else first
    return lin(w, "classifier", x) if "classifier.weight" in w else x


def gpt2(c, w, ids):
    n, eps, act = c["n_head"], c["layer_norm_epsilon"], act_of(c["activation_function"])
    conv = lambda name, x: torch.addmm(w[name + ".bias"], x.flatten(0, 1), w[name + ".weight"]).unflatten(0, x.shape[:2])
    x = w["wte.weight"][ids] + w["wpe.weight"][:ids.shape[1]]
    mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    for l in range(c["n_layer"]):
        q, k, v = conv(f"h.{l}.attn.c_attn", norm(w, f"h.{l}.ln_1", x, eps)).chunk(3, -1)
        scale = 1.0 if c.get("scale_attn_weights") is False else (c["n_embd"] // n)**-0.5
        if c.get("scale_attn_by_inverse_layer_idx"):
            scale /= l + 1
        x = x + conv(f"h.{l}.attn.c_proj", joined(attend(heads(q, n), heads(k, n), heads(v, n), mask, scale)))
        x = x + conv(f"h.{l}.mlp.c_proj", act(conv(f"h.{l}.mlp.c_fc", norm(w, f"h.{l}.ln_2", x, eps))))
    return norm(w, "ln_f", x, eps)


def turns(c, dim, n):
    """exp(i angle) of each token and plane."""
    rope = c.get("rope_scaling") or c.get("rope_parameters") or {}
    theta = rope.get("rope_theta") or c.get("rope_theta")
    f = torch.tensor([theta**(-2.0 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
    kind = rope.get("rope_type") or rope.get("type")
    if kind == "linear":
        f = f / rope["factor"]
    elif kind == "llama3":
        long = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
        short = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
        for i, x in enumerate(f.tolist()):
            wave = 2 * math.pi / x
            if wave > long:
                f[i] = x / rope["factor"]
            elif wave >= short:
                smooth = (rope["original_max_position_embeddings"] / wave - rope["low_freq_factor"]) / (
                    rope["high_freq_factor"] - rope["low_freq_factor"])
                f[i] = (1 - smooth) * x / rope["factor"] + smooth * x
    angle = torch.outer(torch.arange(n, dtype=torch.float64), f)
    return torch.polar(torch.ones_like(angle), angle)


def turned(x, z):
    """The first half of a head holds real parts, the second imaginary ones."""
    y = torch.complex(*x.chunk(2, -1)) * z
    return torch.cat((y.real, y.imag), -1)


def llama(c, w, ids):
    n, kv, eps, act = c["num_attention_heads"], c["num_key_value_heads"], c["rms_norm_eps"], act_of(c["hidden_act"])
    dim, length = c.get("head_dim") or c["hidden_size"] // n, ids.shape[1]
    z, x = turns(c, dim, length), w["embed_tokens.weight"][ids]
    window = c.get("sliding_window") if c["model_type"] == "mistral" or c.get("use_sliding_window") else None
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    if window:
        mask &= torch.ones_like(mask).triu(1 - window)
    for l in range(c["num_hidden_layers"]):
        at = f"layers.{l}."
        y = rms(w, at + "input_layernorm", x, eps)
        q, k, v = (heads(lin(w, f"{at}self_attn.{s}_proj", y), m) for s, m in (("q", n), ("k", kv), ("v", kv)))
        k, v = (t.repeat_interleave(n // kv, 1) for t in (turned(k, z), v))
        x = x + lin(w, at + "self_attn.o_proj", joined(attend(turned(q, z), k, v, mask)))
        y = rms(w, at + "post_attention_layernorm", x, eps)
        x = x + lin(w, at + "mlp.down_proj", act(lin(w, at + "mlp.gate_proj", y)) * lin(w, at + "mlp.up_proj", y))
    return rms(w, "norm", x, eps)


def decoder_output(c, w, x):
    if "score.weight" in w:
        return lin(w, "score", x[:, -1])
    table = w["wte.weight"] if "wte.weight" in w else w["embed_tokens.weight"]
    return F.linear(x, table if c["tie_word_embeddings"] else w["lm_head.weight"])


def pooled(x, pool, dense=None, normalize=False):
    y = {"cls": x[:, 0], "first": x[:, 0], "mean": x.mean(1), "max": x.amax(1), "lasttoken": x[:, -1], "last": x[:, -1]}[pool]
    if dense:
        config, w = dense
        y = lin(w, "linear", y)
        y = torch.tanh(y) if config["activation_function"].endswith("Tanh") else y
    return F.normalize(y, dim=-1) if normalize else y


def pooling_of(folder, told):
    """What sentence-transformers' files, or the words on pare's command line, say; None: nothing."""
    if told:
        return {"pool": told[1], "normalize": "--normalize" in told}
    if not os.path.exists(folder + "/1_Pooling/config.json"):
        return None
    with open(folder + "/1_Pooling/config.json", encoding="utf-8") as f:
        c = json.load(f)
    flags = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean", "pooling_mode_max_tokens": "max",
             "pooling_mode_lasttoken": "lasttoken"}
    out = {"pool": c.get("pooling_mode") or next(v for k, v in flags.items() if c.get(k))}
    if os.path.exists(folder + "/2_Dense"):
        with open(folder + "/2_Dense/config.json", encoding="utf-8") as f:
            out["dense"] = json.load(f), load(folder + "/2_Dense/model.safetensors")
    if os.path.exists(folder + "/modules.json"):
        with open(folder + "/modules.json", encoding="utf-8") as f:
            out["normalize"] = any(m["type"].endswith("Normalize") for m in json.load(f))
    return out


def outputs(folder, told, ids):
    inside = folder + "/0_Transformer"
    c, w = load_folder(inside if os.path.exists(inside) else folder)
    pooling = pooling_of(folder, told)
    decoder = {"gpt2": gpt2, "llama": llama, "mistral": llama, "qwen2": llama}.get(c["model_type"])
    rows = (decoder or encoder)(c, w, ids)
    if pooling:
        return pooled(rows, **pooling)
    return decoder_output(c, w, rows) if decoder else encoder_output(c, w, rows)


def main(root):
    for line in sys.stdin:
        name, *told = line.split()
        ids = torch.from_numpy(np.load(f"{root}/{name}.x.npy"))
        y = outputs(f"{root}/{name}", told, ids).numpy()
        worst = {}
        for kind, most in (("f32", 1e-4), ("f64", 1e-10)):
            z = np.load(f"{root}/{name}.{kind}.npy")
            off = abs(z - y).max() / abs(y).max() if z.shape == y.shape else math.inf
            if not off <= most:
                worst[kind] = f"off by {off:.1e} of the largest entry, shapes {z.shape} and {y.shape}"
        print(name, worst or "agrees")


main(sys.argv[1])
