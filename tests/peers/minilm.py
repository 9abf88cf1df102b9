#!/usr/bin/env python3
"""all-MiniLM-L6-v2 beside pare: token ids and embeddings of its own.

    minilm.py make MODEL DIR      ids.npy; rows/, the model without its pooler; f64.npy, its last rows as
                                  families.py computes them from the same f16 weights
    minilm.py words MODEL DIR     200 sentences of the documents in DIR/s.tsv, their ids in DIR/s/N.npy
    minilm.py compare DIR         what pare (f32, f64) and ONNX Runtime (ort) made of ids.npy
    minilm.py cosines DIR         the rows DIR/s.npy of pare, and DIR/s/N.ort.npy pooled by the mean"""
import glob
import json
import os
import re
import sys

import numpy as np

import families

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SENTENCES = 200


def make(model, out):
    w = families.read_safetensors(glob.glob(model + "/*.safetensors")[0])
    with open(model + "/config.json", encoding="utf-8") as f:
        config = json.load(f)
    os.makedirs(out + "/rows")
    families.write_json(out + "/rows/config.json", config)
    families.write_safetensors(out + "/rows/model.safetensors",
                               {k: (v, "F16") for k, v in w.items() if not k.startswith("pooler.")})
    ids = np.random.default_rng(5).integers(999, config["vocab_size"], (4, 48))
    ids[:, 0], ids[:, -1] = 101, 102
    np.save(out + "/ids.npy", ids)
    np.save(out + "/f64.npy", np.stack([families.encoder_rows(w, config, "", row) for row in ids]))


def word_pieces(text, vocab):
    """Of ASCII text, uncased: words and punctuation, then the longest pieces from the left."""
    ids = [vocab["[CLS]"]]
    for word in re.findall(r"[a-z0-9]+|[^a-z0-9\s]", text.lower()):
        begin, pieces = 0, []
        while begin < len(word):
            ends = [e for e in range(len(word), begin, -1) if ("##" * (begin > 0) + word[begin:e]) in vocab]
            if not ends:
                pieces = [vocab["[UNK]"]]
                break
            pieces.append(vocab["##" * (begin > 0) + word[begin:ends[0]]])
            begin = ends[0]
        ids += pieces
    return ids + [vocab["[SEP]"]]


def sentences():
    out = []
    for path in sorted(glob.glob(ROOT + "/docs/theory/*.md") + glob.glob(ROOT + "/docs/*.md")):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"```.*?```", "", f.read(), flags=re.S)
        for s in re.split(r"(?<=[.!?])\s+", " ".join(text.split())):
            if 30 < len(s) < 300 and s.isascii() and s[0].isalpha() and '"' not in s and "|" not in s and "[" not in s:
                out.append(s)
    assert len(out) > SENTENCES
    return [out[i * len(out) // SENTENCES] for i in range(SENTENCES)]


def words(model, out):
    with open(model + "/tokenizer.json", encoding="utf-8") as f:
        vocab = json.load(f)["model"]["vocab"]
    os.makedirs(out + "/s")
    chosen = sentences()
    with open(out + "/s.tsv", "w", encoding="ascii") as f:
        f.write("sentence\tlabel\n" + "".join(s + "\t0\n" for s in chosen))
    for i, s in enumerate(chosen):
        np.save(f"{out}/s/{i:03}.npy", np.array([word_pieces(s, vocab)]))


def compare(out):
    f64 = np.load(out + "/f64.npy")
    for name, other, most in (("the f64 pass over the same weights", "pare64", 1e-12),
                              ("the f64 pass, in f32", "pare32", 1e-5), ("ONNX Runtime on the f32 file", "ort", 1e-3)):
        a = np.load(f"{out}/{other}.npy") if other != "ort" else np.load(out + "/pare32.npy")
        b = f64 if other != "ort" else np.load(out + "/ort.npy")
        off = abs(a - b).max() / abs(b).max()
        print(f"{name}: {'agrees to %g of the largest entry' % most if a.shape == b.shape and off <= most else off}")
        print(name, off, file=sys.stderr)


def cosines(out):
    ours = np.load(out + "/s.npy")
    least = 1.0
    for i in range(SENTENCES):
        mean = np.load(f"{out}/s/{i:03}.ort.npy")[0].astype(float).mean(0)
        least = min(least, ours[i] @ mean / np.linalg.norm(ours[i]) / np.linalg.norm(mean))
    lengths = np.linalg.norm(ours, axis=1)
    print(f"{len(ours)} sentences, length 1: {bool(abs(lengths - 1).max() < 1e-5)}, cosine with ONNX Runtime at least "
          f"{'.99999' if least >= .99999 else least}")
    print("least cosine", least, file=sys.stderr)


if sys.argv[1] in ("compare", "cosines"):
    {"compare": compare, "cosines": cosines}[sys.argv[1]](sys.argv[2])
else:
    {"make": make, "words": words}[sys.argv[1]](sys.argv[2], sys.argv[3])
