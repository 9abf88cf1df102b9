#!/usr/bin/env python3
"""A llama2.c file in numpy, all in f32 as llama2.c computes (rms norm with eps 1e-5, rotary pairs side
by side with base 10000, scores over the square root of the head, softmax less its maximum, silu gate).

    stories.py MODEL.bin IDS.npy Y.npy     makes IDS (two sequences) and their logits
    stories.py compare Y.npy Z.npy"""
import struct
import sys

import numpy as np

F = np.float32
TOKENS = 64


def read(path):
    with open(path, "rb") as f:
        d = f.read()
    dim, hidden, layers, heads, kv, vocab, context = struct.unpack("<7i", d[:28])
    at, own = 28, vocab < 0
    vocab, size = abs(vocab), dim // heads

    def take(*shape):
        nonlocal at
        n = int(np.prod(shape))
        a = np.frombuffer(d, "<f4", n, at).reshape(shape)
        at += 4 * n
        return a

    w = {"words": take(vocab, dim), "n1": take(layers, dim), "q": take(layers, heads * size, dim),
         "k": take(layers, kv * size, dim), "v": take(layers, kv * size, dim), "o": take(layers, dim, heads * size),
         "n2": take(layers, dim), "w1": take(layers, hidden, dim), "w2": take(layers, dim, hidden),
         "w3": take(layers, hidden, dim), "n3": take(dim)}
    at += 4 * context * size  # tables of cosines and sines
    w["head"] = take(vocab, dim) if own else w["words"]
    assert at == len(d), "another size"
    return w, layers, heads, kv, size


def norm(x, gain):
    return gain * (x * (F(1) / np.sqrt((x * x).mean(-1, keepdims=True, dtype=F) + F(1e-5))))


def rotate(x, size):
    f = F(1) / np.power(F(10000), np.arange(0, size, 2, dtype=F) / F(size))
    angle = np.arange(len(x), dtype=F)[:, None, None] * f
    c, s, a, b = np.cos(angle), np.sin(angle), x[..., 0::2], x[..., 1::2]
    return np.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape)


def logits(model, ids):
    w, layers, heads, kv, size = model
    n, x = len(ids), w["words"][ids]
    hidden_keys = np.triu(np.ones((n, n), bool), 1)
    for l in range(layers):
        z = norm(x, w["n1"][l])
        q = rotate((z @ w["q"][l].T).reshape(n, heads, size), size)
        k = rotate((z @ w["k"][l].T).reshape(n, kv, size), size).repeat(heads // kv, 1)
        v = (z @ w["v"][l].T).reshape(n, kv, size).repeat(heads // kv, 1)
        s = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(F(size))
        s[:, hidden_keys] = -np.inf
        p = np.exp(s - s.max(-1, keepdims=True))
        y = np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v).reshape(n, -1)
        x = x + y @ w["o"][l].T
        z = norm(x, w["n2"][l])
        gate = z @ w["w1"][l].T
        x = x + (gate * (F(1) / (F(1) + np.exp(-gate))) * (z @ w["w3"][l].T)) @ w["w2"][l].T
    out = norm(x, w["n3"]) @ w["head"].T
    assert out.dtype == F
    return out


if sys.argv[1] == "compare":
    y, z = (np.load(p) for p in sys.argv[2:])
    off = abs(y - z).max() / abs(y).max()
    print("agrees to 1e-4 of the largest logit" if y.shape == z.shape and off <= 1e-4 else off)
    print(off, file=sys.stderr)
else:
    m = read(sys.argv[1])
    x = np.random.default_rng(3).integers(3, len(m[0]["words"]), (2, TOKENS))
    x[:, 0] = 1
    for t in range(1, TOKENS):  # the second is what the model itself writes
        x[1, t] = logits(m, x[1, :t])[-1].argmax()
    np.save(sys.argv[2], x)
    np.save(sys.argv[3], np.stack([logits(m, row) for row in x]))
