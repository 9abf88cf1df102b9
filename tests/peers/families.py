#!/usr/bin/env python3
"""A second opinion on Hugging Face folders: numpy in f64, written from the papers' formulas.

    families.py make DIR        a small random folder of each case in DIR/CASE, with x.npy (token
                                ids) and y.npy (what the network gives) beside it in DIR
    families.py compare DIR     CASE.f32.npy and CASE.f64.npy, which pare wrote, against y.npy
    families.py refused DIR     folders that must be refused, or read with a word
    families.py cut DIR         the folders DIR/CASE.CUT that pare made of DIR/CASE: every file, name,
                                shape and type, and CASE.CUT.f64.npy, which pare wrote, against what
                                the network gives with the weights in it

A case names the keys of its config that must matter: with another value of the key the outputs
computed here move by more than 2e-4 of their largest entry, or `make` fails. So a reader that
ignores the key cannot pass.

Attention, post-norm blocks: Vaswani et al. 2017. BERT: Devlin et al. 2018; positions of RoBERTa:
Liu et al. 2019; DistilBERT: Sanh et al. 2019. GPT-2: Radford et al. 2019. Layer norm: Ba et al.
2016; RMS norm: Zhang and Sennrich 2019; gated feed-forward layers: Shazeer 2020; rotary positions:
Su et al. 2021, scaled linearly by Chen et al. 2023 and by wavelength in Llama 3.1; shared keys:
Ainslie et al. 2023; windows: Jiang et al. 2023; GELU: Hendrycks and Gimpel 2016."""
import copy
import json
import math
import os
import shutil
import struct
import sys

import numpy as np

D, HEADS, LAYERS, FFN, VOCAB, TOKENS, BATCH = 24, 4, 3, 40, 37, 30, 2

# ---- files ---------------------------------------------------------------------------------------


def encode(v, dtype):
    if dtype == "BF16":  # the upper half of an f32: make_weights has zeroed the lower one
        return (v.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return v.astype({"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8"}[dtype]).tobytes()


def write_safetensors(path, tensors):
    """tensors: {name: (array, dtype)}."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (v, dtype) in tensors.items():
        b = encode(v, dtype)
        header[name] = {"dtype": dtype, "shape": list(v.shape), "data_offsets": [len(data), len(data) + len(b)]}
        data += b
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f)


class Weights(dict):
    """Random weights that the stored type holds exactly."""

    def __init__(self, seed, dtype):
        super().__init__()
        self.rng, self.dtype = np.random.default_rng(seed), dtype

    def exact(self, v):
        if self.dtype == "BF16":
            return (v.astype("<f4").view("<u4") & np.uint32(0xFFFF0000)).view("<f4").astype(float)
        return v.astype({"F16": "<f2", "F32": "<f4", "F64": "<f8"}[self.dtype]).astype(float)

    def matrix(self, name, *shape, size=None):
        size = 1.3 / math.sqrt(shape[-1]) if size is None else size
        self[name] = self.exact(self.rng.normal(size=shape) * size)

    def near(self, name, n, center):
        self[name] = self.exact(center + 0.3 * self.rng.normal(size=n))

    def dense(self, name, out, inp, bias=True):
        self.matrix(name + ".weight", out, inp)
        if bias:
            self.near(name + ".bias", out, 0)

    def norm(self, name, d, bias=True):
        self.near(name + ".weight", d, 1)
        if bias:
            self.near(name + ".bias", d, 0)


def layers_of(c):
    return next(c[k] for k in ("num_hidden_layers", "n_layers", "n_layer") if k in c)


def units_of(c):
    return next(c[k] for k in ("intermediate_size", "hidden_dim", "n_inner") if k in c) or 4 * D


# ---- formulas ------------------------------------------------------------------------------------

erf = np.vectorize(math.erf)


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTS = {
    "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "gelu_python": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": lambda x: x / 2 * (1 + np.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "linear": lambda x: x,
}


def layer_norm(w, name, x, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * w[name + ".weight"] + w[name + ".bias"]


def rms_norm(w, name, x, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * w[name + ".weight"]


def linear(w, name, x):
    y = x @ w[name + ".weight"].T
    return y + w[name + ".bias"] if name + ".bias" in w else y


def attention(q, k, v, sees, scale):
    """[head, token, dim] each; sees[i, j]: token i attends to token j."""
    s = np.where(sees, q @ k.swapaxes(-1, -2) * scale, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


def split(x, heads):
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def merge(x):
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def past(n, window=None):
    i, j = np.arange(n)[:, None], np.arange(n)
    return (j <= i) & (i - j < window) if window else j <= i


# ---- encoders ------------------------------------------------------------------------------------

BERT_NAMES = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
              "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm")
DISTIL_NAMES = ("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm",
                "ffn.lin1", "ffn.lin2", "output_layer_norm")


def encoder_parts(c):
    distil = c["model_type"] == "distilbert"
    return ("transformer.layer." if distil else "encoder.layer.", DISTIL_NAMES if distil else BERT_NAMES)


def make_encoder(w, c, p):
    layer, names = encoder_parts(c)
    w.matrix(p + "embeddings.word_embeddings.weight", VOCAB, D, size=1)
    w.matrix(p + "embeddings.position_embeddings.weight", c["max_position_embeddings"], D, size=1)
    if "type_vocab_size" in c:
        w.matrix(p + "embeddings.token_type_embeddings.weight", c["type_vocab_size"], D, size=1)
    w.norm(p + "embeddings.LayerNorm", D)
    for l in range(layers_of(c)):
        for name, out, inp in zip(names, (D, D, D, D, 0, units_of(c), D, 0), (D, D, D, D, 0, D, units_of(c), 0)):
            if out:
                w.dense(f"{p}{layer}{l}.{name}", out, inp)
            else:
                w.norm(f"{p}{layer}{l}.{name}", D)


def encoder_rows(w, c, p, ids):
    layer, (q, k, v, o, n1, up, down, n2) = encoder_parts(c)
    distil = c["model_type"] == "distilbert"
    heads, act = c["n_heads" if distil else "num_attention_heads"], ACTS[c["activation" if distil else "hidden_act"]]
    eps = 1e-12 if distil else c["layer_norm_eps"]
    first = c["pad_token_id"] + 1 if c["model_type"] in ("roberta", "xlm-roberta") else 0
    x = w[p + "embeddings.word_embeddings.weight"][ids]
    x = x + w[p + "embeddings.position_embeddings.weight"][first:first + len(ids)]
    if "type_vocab_size" in c:
        x = x + w[p + "embeddings.token_type_embeddings.weight"][0]
    x, width = layer_norm(w, p + "embeddings.LayerNorm", x, eps), x.shape[-1]
    everything = np.ones((len(ids), len(ids)), bool)
    for l in range(layers_of(c)):
        at = f"{p}{layer}{l}."
        heads_of = lambda name: split(linear(w, at + name, x), heads)
        y = merge(attention(heads_of(q), heads_of(k), heads_of(v), everything, 1 / math.sqrt(width // heads)))
        x = layer_norm(w, at + n1, x + linear(w, at + o, y), eps)
        x = layer_norm(w, at + n2, x + linear(w, at + down, act(linear(w, at + up, x))), eps)
    return x


def make_encoder_head(w, c, p, kind):
    family, labels = c["model_type"], len(c.get("id2label", "ab"))
    if kind in ("pooler", "classes") and family == "bert":
        w.dense(p + "pooler.dense", D, D)
    if kind == "classes" and family == "distilbert":
        w.dense("pre_classifier", D, D)
    if kind == "classes" and "roberta" in family:
        w.dense("classifier.dense", D, D)
        w.dense("classifier.out_proj", labels, D)
    elif kind in ("classes", "tokens"):
        w.dense("classifier", labels, D)
    if kind == "masked":
        dense, norm, bias = {"bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
                                      "cls.predictions.bias"),
                             "distilbert": ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias")}.get(
                                 family, ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"))
        w.dense(dense, D, D)
        w.norm(norm, D)
        w.near(bias, VOCAB, 0)


def encoder_head(w, c, p, kind, x):
    family = c["model_type"]
    if kind == "pooler":
        return np.tanh(linear(w, p + "pooler.dense", x[0]))
    if kind == "tokens":
        return linear(w, "classifier", x)
    if kind == "classes" and family == "bert":
        return linear(w, "classifier", np.tanh(linear(w, p + "pooler.dense", x[0])))
    if kind == "classes" and family == "distilbert":
        return linear(w, "classifier", np.maximum(linear(w, "pre_classifier", x[0]), 0))
    if kind == "classes":
        return linear(w, "classifier.out_proj", np.tanh(linear(w, "classifier.dense", x[0])))
    if kind == "masked":
        words = w[p + "embeddings.word_embeddings.weight"].T
        if family == "bert":
            t = ACTS[c["hidden_act"]](linear(w, "cls.predictions.transform.dense", x))
            t = layer_norm(w, "cls.predictions.transform.LayerNorm", t, c["layer_norm_eps"])
            return t @ words + w["cls.predictions.bias"]
        if family == "distilbert":
            t = layer_norm(w, "vocab_layer_norm", ACTS[c["activation"]](linear(w, "vocab_transform", x)), 1e-12)
            return t @ words + w["vocab_projector.bias"]
        t = layer_norm(w, "lm_head.layer_norm", ACTS["gelu"](linear(w, "lm_head.dense", x)), c["layer_norm_eps"])
        return t @ words + w["lm_head.bias"]
    return x


# ---- GPT-2 ---------------------------------------------------------------------------------------


def make_gpt2(w, c, p):
    """Conv1D: matrices are stored [in, out]."""
    inner = units_of(c)
    w.matrix(p + "wte.weight", VOCAB, D, size=1)
    w.matrix(p + "wpe.weight", c["n_positions"], D, size=1)
    for l in range(layers_of(c)):
        for name, inp, out in (("attn.c_attn", D, 3 * D), ("attn.c_proj", D, D), ("mlp.c_fc", D, inner),
                               ("mlp.c_proj", inner, D)):
            w.matrix(f"{p}h.{l}.{name}.weight", inp, out, size=1.3 / math.sqrt(inp))
            w.near(f"{p}h.{l}.{name}.bias", out, 0)
        w.norm(f"{p}h.{l}.ln_1", D)
        w.norm(f"{p}h.{l}.ln_2", D)
    w.norm(p + "ln_f", D)


def gpt2_rows(w, c, p, ids):
    conv = lambda name, x: x @ w[name + ".weight"] + w[name + ".bias"]
    n, eps = len(ids), c["layer_norm_epsilon"]
    x = w[p + "wte.weight"][ids] + w[p + "wpe.weight"][:n]
    for l in range(layers_of(c)):
        at = f"{p}h.{l}."
        q, k, v = (split(part, c["n_head"]) for part in
                   np.split(conv(at + "attn.c_attn", layer_norm(w, at + "ln_1", x, eps)), 3, axis=-1))
        scale = 1 / math.sqrt(D // c["n_head"]) if c.get("scale_attn_weights", True) else 1
        if c.get("scale_attn_by_inverse_layer_idx"):
            scale /= l + 1
        x = x + conv(at + "attn.c_proj", merge(attention(q, k, v, past(n), scale)))
        z = ACTS[c["activation_function"]](conv(at + "mlp.c_fc", layer_norm(w, at + "ln_2", x, eps)))
        x = x + conv(at + "mlp.c_proj", z)
    return layer_norm(w, p + "ln_f", x, eps)


# ---- Llama, Mistral, Qwen2 -----------------------------------------------------------------------


def head_dim(c):
    return c.get("head_dim") or D // c["num_attention_heads"]


def make_llama(w, c, p):
    q, kv = head_dim(c) * c["num_attention_heads"], head_dim(c) * c["num_key_value_heads"]
    qwen = c["model_type"] == "qwen2"
    qkv_bias, o_bias = qwen or c.get("attention_bias", False), c.get("attention_bias", False)
    w.matrix(p + "embed_tokens.weight", VOCAB, D, size=1)
    for l in range(layers_of(c)):
        at = f"{p}layers.{l}."
        for name, out, inp, bias in (("q", q, D, qkv_bias), ("k", kv, D, qkv_bias), ("v", kv, D, qkv_bias),
                                     ("o", D, q, o_bias)):
            w.dense(f"{at}self_attn.{name}_proj", out, inp, bias)
        for name, out, inp in (("gate", units_of(c), D), ("up", units_of(c), D), ("down", D, units_of(c))):
            w.dense(f"{at}mlp.{name}_proj", out, inp, c.get("mlp_bias", False))
        w.norm(at + "input_layernorm", D, bias=False)
        w.norm(at + "post_attention_layernorm", D, bias=False)
    w.norm(p + "norm", D, bias=False)


def frequencies(c):
    rope = dict(c.get("rope_scaling") or c.get("rope_parameters") or {})
    theta = rope.get("rope_theta", c.get("rope_theta", 10000.0))
    f = theta ** (-np.arange(0, head_dim(c), 2) / head_dim(c))
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "linear":
        return f / rope["factor"]
    if kind == "llama3":
        # Waves that fit more than `high` times into the old context stay; those that fit less than
        # `low` times are stretched; between the two a mixture.
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        fits = rope["original_max_position_embeddings"] * f / (2 * math.pi)
        keep = np.clip((fits - low) / (high - low), 0, 1)
        return keep * f + (1 - keep) * f / rope["factor"]
    assert kind == "default"
    return f


def rotate(x, f):
    """[head, token, dim]: the pair (i, i + dim/2) turns by token * f[i]."""
    angle = np.arange(x.shape[1])[:, None] * f
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


def window_of(c):
    window = c.get("sliding_window")
    return None if c["model_type"] == "llama" or c["model_type"] == "qwen2" and not c.get("use_sliding_window") else window


def llama_rows(w, c, p, ids):
    heads, kv, eps, n = c["num_attention_heads"], c["num_key_value_heads"], c["rms_norm_eps"], len(ids)
    f, act = frequencies(c), ACTS[c["hidden_act"]]
    x = w[p + "embed_tokens.weight"][ids]
    for l in range(layers_of(c)):
        at = f"{p}layers.{l}."
        z = rms_norm(w, at + "input_layernorm", x, eps)
        q = rotate(split(linear(w, at + "self_attn.q_proj", z), heads), f)
        k = rotate(split(linear(w, at + "self_attn.k_proj", z), kv), f)
        v = split(linear(w, at + "self_attn.v_proj", z), kv)
        k, v = np.repeat(k, heads // kv, 0), np.repeat(v, heads // kv, 0)
        y = attention(q, k, v, past(n, window_of(c)), 1 / math.sqrt(head_dim(c)))
        x = x + linear(w, at + "self_attn.o_proj", merge(y))
        z = rms_norm(w, at + "post_attention_layernorm", x, eps)
        x = x + linear(w, at + "mlp.down_proj", act(linear(w, at + "mlp.gate_proj", z)) * linear(w, at + "mlp.up_proj", z))
    return rms_norm(w, p + "norm", x, eps)


# ---- heads that families share -------------------------------------------------------------------

MAKE = {"gpt2": (make_gpt2, gpt2_rows, "wte"), "llama": (make_llama, llama_rows, "embed_tokens")}
MAKE["mistral"] = MAKE["qwen2"] = MAKE["llama"]


def make_decoder_head(w, c, kind):
    if kind == "classes":
        w.dense("score", len(c["id2label"]), D, bias=False)
    if kind == "words" and not c["tie_word_embeddings"]:
        w.matrix("lm_head.weight", VOCAB, D)


def decoder_head(w, c, p, kind, x):
    if kind == "classes":
        return linear(w, "score", x[-1])
    if kind == "words":
        tied = p + MAKE[c["model_type"]][2] + ".weight"
        return x @ w[tied if c["tie_word_embeddings"] else "lm_head.weight"].T
    return x


def pooled(w, modules, x):
    """What sentence-transformers does with the rows, in its order."""
    y = {"cls": x[0], "mean": x.mean(0), "max": x.max(0), "lasttoken": x[-1]}[modules["pool"]]
    if "dense" in modules:
        act = modules["dense"]
        y = linear(w, "2_Dense.linear", y)
        y = {"Tanh": np.tanh, "Identity": lambda v: v, "ReLU": ACTS["relu"], "GELU": ACTS["gelu"]}[act](y)
    return y / np.sqrt((y**2).sum()) if modules.get("normalize") else y


def outputs(case, w, c, ids):
    p, kind, modules = case["prefix"], case["head"], case.get("modules")
    if c["model_type"] in MAKE:
        rows = MAKE[c["model_type"]][1](w, c, p, ids)
        return pooled(w, modules, rows) if modules else decoder_head(w, c, p, kind, rows)
    rows = encoder_rows(w, c, p, ids)
    return pooled(w, modules, rows) if modules else encoder_head(w, c, p, kind, rows)


# ---- cases ---------------------------------------------------------------------------------------

LABELS = {"0": "a", "1": "b", "2": "c"}
SIZES = {"vocab_size": VOCAB, "hidden_size": D, "num_hidden_layers": LAYERS, "intermediate_size": FFN}
BERT = {"model_type": "bert", "num_attention_heads": HEADS, "hidden_act": "gelu", "layer_norm_eps": 1e-2, **SIZES,
        "max_position_embeddings": TOKENS + 4, "type_vocab_size": 2, "position_embedding_type": "absolute",
        "pad_token_id": 0, "pruned_heads": {}, "is_decoder": False}
ROBERTA = {**BERT, "model_type": "roberta", "type_vocab_size": 1, "pad_token_id": 1}
XLMR = {**ROBERTA, "model_type": "xlm-roberta", "pad_token_id": 3}
DISTIL = {"model_type": "distilbert", "n_heads": HEADS, "activation": "gelu", "dim": D, "n_layers": LAYERS,
          "hidden_dim": FFN, "vocab_size": VOCAB, "max_position_embeddings": TOKENS + 4, "sinusoidal_pos_embds": False}
GPT2 = {"model_type": "gpt2", "n_head": HEADS, "n_embd": D, "n_layer": LAYERS, "n_inner": None, "vocab_size": VOCAB,
        "n_positions": TOKENS + 4, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-2,
        "tie_word_embeddings": True}
LLAMA = {"model_type": "llama", **SIZES, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": None,
         "rms_norm_eps": 1e-2, "rope_theta": 500.0, "rope_scaling": None, "hidden_act": "silu",
         "max_position_embeddings": 128, "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False}
MISTRAL = {**LLAMA, "model_type": "mistral", "num_key_value_heads": 2, "sliding_window": 7}
QWEN = {k: v for k, v in LLAMA.items() if k not in ("attention_bias", "mlp_bias")}
QWEN.update(model_type="qwen2", num_key_value_heads=2, use_sliding_window=False, sliding_window=7, max_window_layers=0)
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 48}
MISSING = object()  # a key that is taken away


def case(config, head, prefix="", dtype="F32", matters=(), **more):
    """matters: {key: another value}."""
    return {"config": config, "head": head, "prefix": prefix, "dtype": dtype, "matters": dict(matters), **more}


CASES = {
    "bert-rows": case(BERT, "rows", matters={"layer_norm_eps": 1e-1}),
    "bert-pooler": case(BERT, "pooler", "bert.", "F16"),
    "bert-classes": case({**BERT, "id2label": LABELS, "architectures": ["BertForSequenceClassification"]}, "classes",
                         "bert.", "F64", position_ids=True),
    "bert-tokens": case({**BERT, "id2label": LABELS, "architectures": ["BertForTokenClassification"]}, "tokens", "bert."),
    "bert-masked": case({**BERT, "architectures": ["BertForMaskedLM"]}, "masked", "bert.", "BF16"),
    "distilbert-rows": case(DISTIL, "rows"),
    "distilbert-classes": case({**DISTIL, "id2label": LABELS}, "classes", "distilbert.", "F16"),
    "distilbert-tokens": case({**DISTIL, "id2label": LABELS}, "tokens", "distilbert."),
    "distilbert-masked": case({**DISTIL, "activation": "relu"}, "masked", "distilbert.", matters={"activation": "gelu"}),
    "roberta-rows": case(ROBERTA, "rows", matters={"pad_token_id": 0}),
    "roberta-classes": case({**ROBERTA, "id2label": LABELS}, "classes", "roberta.", "F16"),
    "roberta-tokens": case({**ROBERTA, "id2label": LABELS}, "tokens", "roberta."),
    "roberta-masked": case({**ROBERTA, "hidden_act": "relu"}, "masked", "roberta.", position_ids=True),
    "xlmr-masked": case(XLMR, "masked", "roberta.", "BF16", matters={"pad_token_id": 1}),
    "gpt2-words": case(GPT2, "words", "transformer.", buffers=True),
    "gpt2-words-f16": case({**GPT2, "n_inner": FFN, "activation_function": "gelu"}, "words", "", "F16",
                           matters={"activation_function": "gelu_new", "layer_norm_epsilon": 1e-1}),
    "gpt2-classes": case({**GPT2, "id2label": LABELS}, "classes", "transformer."),
    "gpt2-scales": case({**GPT2, "scale_attn_by_inverse_layer_idx": True, "scale_attn_weights": False}, "words",
                        matters={"scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True}),
    "llama-words": case(LLAMA, "words", "model.", matters={"rope_theta": 10000.0, "rms_norm_eps": 1e-1},
                        inv_freq=True),
    "llama-shared-keys": case({**LLAMA, "num_key_value_heads": 2}, "words", "model.", "BF16"),
    "llama-head-dim": case({**LLAMA, "head_dim": 10, "num_key_value_heads": 1}, "words", "model.", "F16"),
    "llama-biases": case({**LLAMA, "attention_bias": True, "mlp_bias": True}, "words", "model."),
    "llama-linear": case({**LLAMA, "head_dim": 16, "rope_scaling": {"type": "linear", "factor": 4.0}}, "words", "model.",
                         matters={"rope_scaling": None}),
    "llama-llama3": case({**LLAMA, "head_dim": 16, "rope_scaling": LLAMA3}, "words", "model.", "BF16",
                         matters={"rope_scaling": None}, alternatives=[
                             {"rope_scaling": {"type": "linear", "factor": 8.0}},
                             {"rope_scaling": {**LLAMA3, "low_freq_factor": 2.0}},
                             {"rope_scaling": {**LLAMA3, "high_freq_factor": 8.0}},
                             {"rope_scaling": {**LLAMA3, "original_max_position_embeddings": 96}}]),
    "llama-parameters": case({**{k: v for k, v in LLAMA.items() if k not in ("rope_theta", "rope_scaling")},
                              "head_dim": 16, "rope_parameters": {**LLAMA3, "rope_theta": 700.0}}, "words", "model.",
                             matters={"rope_parameters": {"rope_type": "default", "rope_theta": 700.0}},
                             alternatives=[{"rope_parameters": {**LLAMA3, "rope_theta": 10000.0}}]),
    "llama-classes": case({**LLAMA, "id2label": LABELS, "architectures": ["LlamaForSequenceClassification"]},
                          "classes", "model."),
    "smollm-tied": case({**LLAMA, "tie_word_embeddings": True, "num_key_value_heads": 2, "rope_theta": 100000.0,
                         "rope_interleaved": False}, "words", "model.", "BF16"),
    "mistral-window": case(MISTRAL, "words", "model.", matters={"sliding_window": None}, alternatives=[
        {"sliding_window": 6}, {"sliding_window": 8}]),
    "mistral-shards": case({**MISTRAL, "sliding_window": None}, "words", "model.", "F16", shards=3),
    "qwen2-words": case(QWEN, "words", "model.", "BF16"),
    "qwen2-window": case({**QWEN, "use_sliding_window": True}, "words", "model.",
                         matters={"use_sliding_window": False}),
    "qwen2-tied": case({**QWEN, "tie_word_embeddings": True}, "words", "model.", "F64"),
    "qwen2-classes": case({**QWEN, "id2label": LABELS}, "classes", "model."),
    "st-mean": case(BERT, "pooler", modules={"pool": "mean", "normalize": True}),
    "st-mean-only": case(BERT, "rows", "bert.", "F16", modules={"pool": "mean", "alone": True}),
    "st-first": case(ROBERTA, "rows", modules={"pool": "cls", "normalize": True, "new": True}),
    "st-max": case(DISTIL, "rows", dtype="F16", modules={"pool": "max", "new": True}),
    "st-last": case(QWEN, "rows", "", "BF16", modules={"pool": "lasttoken", "normalize": True}),
    "st-dense": case(XLMR, "rows", modules={"pool": "mean", "dense": "Tanh", "normalize": True}),
    "st-dense-plain": case(BERT, "pooler", modules={"pool": "cls", "dense": "Identity", "new": True}),
    "st-inside": case(BERT, "pooler", modules={"pool": "mean", "inside": "0_Transformer"}),
    "told-mean": case(BERT, "pooler", modules={"pool": "mean", "normalize": True, "told": True}),
    "told-first": case(DISTIL, "rows", modules={"pool": "cls", "told": True}),
    "told-max": case(ROBERTA, "rows", "roberta.", modules={"pool": "max", "normalize": True, "told": True}),
    "told-last": case({**LLAMA, "tie_word_embeddings": True}, "words", "model.",
                      modules={"pool": "lasttoken", "normalize": True, "told": True}),
}
for name in ("gelu_python", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "relu", "silu", "swish", "tanh"):
    CASES["act-" + name] = case({**BERT, "hidden_act": name}, "rows")
PYTORCH = {"Tanh": "torch.nn.modules.activation.Tanh", "Identity": "torch.nn.modules.linear.Identity"}


def write_modules(folder, w, m):
    kind = "sentence_transformers.models."
    listed = [(m.get("inside", ""), kind + "Transformer"), ("1_Pooling", kind + "Pooling")]
    flags = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean", "pooling_mode_max_tokens": "max",
             "pooling_mode_mean_sqrt_len_tokens": "", "pooling_mode_weightedmean_tokens": "",
             "pooling_mode_lasttoken": "lasttoken"}
    old = {"word_embedding_dimension": D, **{k: v == m["pool"] for k, v in flags.items()}}
    new = {"embedding_dimension": D, "pooling_mode": m["pool"], "include_prompt": True}
    write_json(folder + "/1_Pooling/config.json", new if m.get("new") else old)
    if m.get("alone"):  # without modules.json
        return
    if "dense" in m:
        listed.append(("2_Dense", kind + "Dense"))
        write_json(folder + "/2_Dense/config.json", {"in_features": D, "out_features": 11, "bias": True,
                                                    "activation_function": PYTORCH[m["dense"]]})
        write_safetensors(folder + "/2_Dense/model.safetensors", {
            k: (w["2_Dense." + k], w.dtype) for k in ("linear.weight", "linear.bias")})
    if m.get("normalize"):
        listed.append((f"{len(listed)}_Normalize", kind + "Normalize"))
    write_json(folder + "/modules.json", [{"idx": i, "name": str(i), "path": path, "type": t}
                                          for i, (path, t) in enumerate(listed)])
    write_json(folder + "/sentence_bert_config.json", {"max_seq_length": TOKENS + 2, "do_lower_case": False})
    if m.get("inside"):  # as the oldest versions lay it out
        os.mkdir(folder + "/" + m["inside"])
        for name in ("config.json", "model.safetensors", "sentence_bert_config.json"):
            os.rename(f"{folder}/{name}", f"{folder}/{m['inside']}/{name}")


def all_tensors(case, w, layers):
    """With the buffers that some files have."""
    p = case["prefix"]
    tensors = {k: (v, w.dtype) for k, v in w.items() if not k.startswith("2_Dense.")}
    if case.get("position_ids"):
        tensors[p + "embeddings.position_ids"] = (np.arange(TOKENS + 4)[None], "I64")
    if case.get("buffers"):
        for l in range(layers):
            tensors[f"{p}h.{l}.attn.bias"] = (np.tril(np.ones((1, 1, TOKENS, TOKENS))), "F32")
            tensors[f"{p}h.{l}.attn.masked_bias"] = (np.array(-1e4), "F32")
    if case.get("inv_freq"):
        tensors[f"{p}layers.0.self_attn.rotary_emb.inv_freq"] = (np.ones(3), "F32")
    return tensors


def write_weights(folder, case, w, number):
    tensors = all_tensors(case, w, LAYERS)
    shards = case.get("shards", 1)
    if shards == 1:  # every third under another name
        write_safetensors(folder + ("/weights.fp.safetensors" if number % 3 == 0 and "inside" not in case.get("modules", {}) else "/model.safetensors"), tensors)
        return
    names, index = sorted(tensors), {}
    for s in range(shards):
        file = f"model-{s + 1:05}-of-{shards:05}.safetensors"
        mine = names[s::shards]
        index.update({n: file for n in mine})
        write_safetensors(f"{folder}/{file}", {n: tensors[n] for n in mine})
    write_json(folder + "/model.safetensors.index.json", {"metadata": {}, "weight_map": index})


def make_weights(number, c, case):
    """The tensors that a config implies, by their names."""
    w = Weights(number, case["dtype"])
    if c["model_type"] in MAKE:
        MAKE[c["model_type"]][0](w, c, case["prefix"])
        make_decoder_head(w, c, case["head"])
    else:
        make_encoder(w, c, case["prefix"])
        make_encoder_head(w, c, case["prefix"], case["head"])
    if "dense" in case.get("modules", {}):
        w.dense("2_Dense.linear", 11, D)
    return w


def make_case(root, number, name, case, quiet=False):
    folder, c = f"{root}/{name}", case["config"]
    w = make_weights(number, c, case)
    write_json(folder + "/config.json", c)
    write_weights(folder, case, w, number)
    if "modules" in case and not case["modules"].get("told"):
        write_modules(folder, w, case["modules"])
    ids = w.rng.integers(5, VOCAB, (BATCH, TOKENS))  # no special token: RoBERTa counts them otherwise
    y = np.stack([outputs(case, w, c, row) for row in ids])
    for other in [{k: v} for k, v in case["matters"].items()] + case.get("alternatives", []):
        moved = abs(np.stack([outputs(case, w, {**c, **other}, row) for row in ids]) - y).max()
        if not moved > 2e-4 * abs(y).max():
            sys.exit(f"families.py: {name}: {other} moves the outputs by {moved / abs(y).max():.1e} of the largest only")
    np.save(f"{root}/{name}.x.npy", ids.astype("<i8"))
    np.save(f"{root}/{name}.y.npy", y)
    m = case.get("modules", {})
    words = {"cls": "first", "lasttoken": "last"}
    told = f"--pool {words.get(m['pool'], m['pool'])}{' --normalize' * bool(m.get('normalize'))}" if m.get("told") else ""
    if not quiet:
        print(name, told)


def compare(root):
    for name in CASES:
        y = np.load(f"{root}/{name}.y.npy")
        for kind, most in (("f32", 1e-4), ("f64", 1e-10)):
            try:
                z = np.load(f"{root}/{name}.{kind}.npy")
            except FileNotFoundError:
                print(f"{name} {kind}: pare wrote nothing")
                continue
            if z.shape != y.shape:
                print(f"{name} {kind}: shape {z.shape}, not {y.shape}")
            elif not abs(z - y).max() <= most * abs(y).max():
                print(f"{name} {kind}: off by {abs(z - y).max() / abs(y).max():.1e} of the largest entry")
            elif kind == "f64":
                print(name, "agrees", *y.shape[1:])


# ---- cuts ----------------------------------------------------------------------------------------

SIZE_KEYS = {"intermediate_size", "hidden_dim", "n_inner", "num_hidden_layers", "n_layers", "n_layer"}


def read_typed(path):
    """{name: (array in f64, dtype)}."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        b = data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
        if t["dtype"] == "BF16":
            v = (np.frombuffer(b, "<u2").astype("<u4") << 16).view("<f4")
        else:
            v = np.frombuffer(b, {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8"}[t["dtype"]])
        tensors[name] = (v.reshape(t["shape"]).astype(float), t["dtype"])
    return tensors


def files_of(folder):
    return {os.path.relpath(os.path.join(at, f), folder) for at, _, files in os.walk(folder) for f in files}


def check_files(source, folder, told):
    """What is wrong with the files beside the weights."""
    old, new = files_of(source), files_of(folder)
    weights = [f for f in old if f.endswith(".safetensors") and "-of-" not in f and "Dense" not in f]
    if len(weights) == 1:  # what transformers and sentence-transformers open
        old = old - set(weights) | {os.path.join(os.path.dirname(weights[0]), "model.safetensors")}
    added = {"pare.cert.json", "pare.run.json"}
    if told:
        added |= {"modules.json", "1_Pooling/config.json", "sentence_bert_config.json"}
    if new != old | added:
        yield f"files missing {sorted((old | added) - new)}, not expected {sorted(new - old - added)}"
    for name in sorted(files_of(source) & new):
        with open(f"{source}/{name}", "rb") as a, open(f"{folder}/{name}", "rb") as b:
            same = a.read() == b.read()
        weights = name.endswith((".safetensors", ".index.json")) and not name.startswith("2_Dense")
        rewritten = weights or name in ("config.json", "0_Transformer/config.json")
        if not same and not rewritten:
            yield name + " has changed"


def check_tensors(folder, case, c):
    """What is wrong with the weights, and the weights."""
    w, found = make_weights(0, c, case), {}
    for name in sorted(f for f in os.listdir(folder) if f.endswith(".safetensors")):
        found.update(read_typed(f"{folder}/{name}"))
    want = all_tensors(case, w, layers_of(c))
    wrong = [f"{n} is missing" for n in want if n not in found] + [f"{n} is not expected" for n in found if n not in want]
    for n in set(want) & set(found):
        (v, dtype), (x, is_dtype) = want[n], found[n]
        if v.shape != x.shape or dtype != is_dtype:
            wrong.append(f"{n} is {is_dtype} {x.shape}, not {dtype} {v.shape}")
    if os.path.exists(folder + "/model.safetensors.index.json"):
        with open(folder + "/model.safetensors.index.json", encoding="utf-8") as f:
            if set(json.load(f)["weight_map"]) != set(found):
                wrong.append("the index lists other tensors than the shards have")
    for n, (x, _) in found.items():
        w[n] = x
    if "dense" in case.get("modules", {}):
        for n, (x, _) in read_typed(folder + "/2_Dense/model.safetensors").items():
            w["2_Dense." + n] = x
    return wrong, w


def check_cut(root, name, case, cut):
    source, folder, modules_of = f"{root}/{name}", f"{root}/{name}.{cut}", case.get("modules", {})
    inside = folder + ("/" + modules_of["inside"] if "inside" in modules_of else "")  # that of the transformer
    with open(inside + "/config.json", encoding="utf-8") as f:
        c = json.load(f)
    told = modules_of.get("told")
    wrong = [f"config.json: {k} is {c.get(k)}" for k in set(c) | set(case["config"])
             if k not in SIZE_KEYS and c.get(k) != case["config"].get(k)]
    wrong += check_files(source, folder, told)
    tensors, w = check_tensors(inside, case, c)
    wrong += tensors
    if not wrong:
        y = np.stack([outputs(case, w, c, row) for row in np.load(f"{root}/{name}.x.npy")])
        z = np.load(f"{root}/{name}.{cut}.f64.npy")
        if z.shape != y.shape or not abs(z - y).max() <= 1e-10 * abs(y).max():
            wrong.append("the outputs are others")
        elif cut == "folded":  # the same function, but for the rounding of the stored type
            unit = {"F16": 2.0**-11, "BF16": 2.0**-8}.get(case["dtype"], 2.0**-24)
            before = np.load(f"{root}/{name}.y.npy")
            if not abs(y - before).max() <= 40 * unit * abs(before).max():
                wrong.append(f"it is {abs(y - before).max() / abs(before).max():.1e} of the largest output off")
    print(f"{name}.{cut}:", "; ".join(wrong) or f"{layers_of(c)} layers, {units_of(c)} units, agrees")


# ---- what must be refused, or read with a word ---------------------------------------------------

# {name: (a case, keys of its config that change, files: {path: JSON, a file to copy, or None to remove})}
POOLING, TYPE = "1_Pooling/config.json", "sentence_transformers.models."


def modules(*kinds):
    return {"modules.json": [{"idx": i, "name": str(i), "path": f"{i}_{k}" if i else "", "type": TYPE + k}
                             for i, k in enumerate(kinds)]}


def types(*names):
    return {"type-" + n: ("bert-rows", {"model_type": n}, {}) for n in names}


CHANGED = {
    **types("gpt_neox", "qwen3", "gemma", "gemma2", "mpnet", "t5", "mixtral", "bloom", "falcon", "phi3", "modernbert",
            "unheard"),
    "encoder-decoder": ("bert-rows", {"is_encoder_decoder": True}, {}),
    "decoder": ("bert-rows", {"is_decoder": True}, {}),
    "cross": ("gpt2-words", {"add_cross_attention": True}, {}),
    "pruned": ("gpt2-words", {"pruned_heads": {"1": [0, 2]}}, {}),
    "packed": ("llama-words", {"quantization_config": {"quant_method": "gptq"}}, {}),
    "relative": ("bert-rows", {"position_embedding_type": "relative_key"}, {}),
    "alibi": ("bert-rows", {"position_embedding_type": "alibi"}, {}),
    **{"act-" + n: ("bert-rows", {"hidden_act": n}, {}) for n in ("quick_gelu", "gelu_10", "mish", "linear")},
    "width": ("bert-rows", {"hidden_size": D + 4}, {}),
    "fewer-layers": ("llama-words", {"num_hidden_layers": LAYERS - 1}, {}),
    "words": ("gpt2-words", {"vocab_size": VOCAB + 1}, {}),
    "positions": ("roberta-rows", {"max_position_embeddings": 512}, {}),
    "labels": ("distilbert-classes", {"id2label": {"0": "no", "1": "yes"}}, {}),
    "head-dim": ("llama-words", {"head_dim": 8}, {}),
    "kv-heads": ("llama-shared-keys", {"num_key_value_heads": 4}, {}),
    "bias-unannounced": ("llama-biases", {"attention_bias": False}, {}),
    "bias-missing": ("llama-words", {"mlp_bias": True}, {}),
    **{"rope-" + n: ("llama-words", {"rope_scaling": {"rope_type": n, "factor": 4.0}}, {})
       for n in ("yarn", "dynamic", "longrope", "llama3")},
    "rope-half": ("llama-words", {"partial_rotary_factor": 0.5}, {}),
    "rope-by-layer": ("llama-words", {"rope_parameters": {"full_attention": {"rope_type": "default"}}}, {}),
    "window-in-llama": ("llama-words", {"sliding_window": 7}, {}),
    "window-by-layer": ("qwen2-window", {"max_window_layers": 2}, {}),
    "window-types": ("qwen2-window", {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}, {}),
    "window-default-28": ("qwen2-window", {"max_window_layers": MISSING}, {}),
    "window-default-4096": ("mistral-window", {"sliding_window": MISSING}, {}),
    "soft-cap": ("mistral-window", {"final_logit_softcapping": 30.0}, {}),
    "experts": ("mistral-window", {"num_local_experts": 8}, {}),
    "untied-without-head": ("smollm-tied", {"tie_word_embeddings": False}, {}),
    "tied-with-another-head": ("llama-words", {"tie_word_embeddings": True}, {}),
    "own-code": ("bert-rows", {"auto_map": {"AutoModel": "x.y"}}, {}),
    "shard-missing": ("mistral-shards", {}, {"model-00002-of-00003.safetensors": None}),
    "shard-other": ("mistral-shards", {}, {"model-00002-of-00003.safetensors": "model-00001-of-00003.safetensors"}),
    "shards-twice": ("mistral-shards", {}, {"model.safetensors.index.json": None,
                                            "model-00002-of-00003.safetensors": "model-00001-of-00003.safetensors"}),
    "two-files": ("act-gelu_new", {}, {"a.safetensors": "model.safetensors", "b.safetensors": "model.safetensors",
                                      "model.safetensors": None}),
    "no-weights": ("act-gelu_new", {}, {"model.safetensors": None}),
    "pooling-two": ("st-mean", {}, {POOLING: {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}}),
    "pooling-list": ("st-mean", {}, {POOLING: {"pooling_mode": ["cls", "mean"]}}),
    "pooling-weighted": ("st-mean", {}, {POOLING: {"pooling_mode": "weightedmean"}}),
    "pooling-sqrt": ("st-mean", {}, {POOLING: {"pooling_mode_mean_sqrt_len_tokens": True}}),
    "pooling-unheard": ("st-mean", {}, {POOLING: {"pooling_mode": "median"}}),
    "pooling-none": ("st-mean", {}, {POOLING: {"word_embedding_dimension": D}}),
    "pooling-width": ("st-mean", {}, {POOLING: {"pooling_mode_mean_tokens": True, "word_embedding_dimension": 384}}),
    "pooling-missing": ("st-mean", {}, {POOLING: None}),
    "modules-order": ("st-mean", {}, modules("Transformer", "Normalize", "Pooling")),
    "modules-other": ("st-mean", {}, modules("Transformer", "Pooling", "LayerNorm")),
    "modules-outside": ("st-mean", {}, {"modules.json": [{"path": "../st-mean", "type": TYPE + "Transformer"}]}),
    "dense-act": ("st-dense", {}, {"2_Dense/config.json": {"in_features": D, "out_features": 11,
                                                          "activation_function": "torch.nn.modules.activation.ELU"}}),
    "dense-weights": ("st-dense", {}, {"2_Dense/model.safetensors": None}),
    "limit": ("st-mean", {}, {"sentence_bert_config.json": {"max_seq_length": 0}}),
    "lower-case": ("st-mean", {}, {"sentence_bert_config.json": {"max_seq_length": 9, "do_lower_case": True}}),
    "prompt": ("st-mean", {}, {"config_sentence_transformers.json": {"prompts": {"q": "query: "}, "default_prompt_name": "q"}}),
}


def make_changed(root):
    for number, (name, (base, keys, files)) in enumerate(CHANGED.items()):
        one = copy.deepcopy(CASES[base])
        one["matters"], one["alternatives"] = {}, []
        folder = root + "/" + name
        make_case(root, 3 * number + 1, name, one, quiet=True)
        config = {k: v for k, v in {**one["config"], **keys}.items() if v is not MISSING}
        write_json(folder + "/config.json", config)
        for path, what in files.items():
            if isinstance(what, str):
                shutil.copy(f"{folder}/{what}", f"{folder}/{path}")
            elif what is None:
                os.remove(f"{folder}/{path}")
            else:
                write_json(f"{folder}/{path}", what)
        print(name)


def read_safetensors(path):
    """{name: array in f64}, integers left out."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    out, types = {}, {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__" and t["dtype"] in types:
            a, b = t["data_offsets"]
            out[name] = np.frombuffer(data[8 + n + a:8 + n + b], types[t["dtype"]]).reshape(t["shape"]).astype(float)
    return out


if __name__ != "__main__":
    pass
elif sys.argv[1] == "make":
    for at, (key, value) in enumerate(CASES.items()):
        make_case(sys.argv[2], at, key, copy.deepcopy(value))
elif sys.argv[1] == "refused":
    make_changed(sys.argv[2])
elif sys.argv[1] == "cut":
    for key, value in CASES.items():
        for kind in ("narrow", "short", "folded"):
            if os.path.exists(f"{sys.argv[2]}/{key}.{kind}"):
                check_cut(sys.argv[2], key, value, kind)
else:
    compare(sys.argv[2])
