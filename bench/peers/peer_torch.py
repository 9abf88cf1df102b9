#!/usr/bin/env python3
"""PyTorch as a peer of `pare bench --peer`: the same work from the same files (docs/bench.md).

Where torch can be used in several ways the fastest one is taken for each case, and named."""
import json
import os
import struct
import sys
import time
import warnings

# Before torch is there: its BLAS reads these once. Threads that wait must not spin: we take turns.
OPENMP = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
if os.path.isdir(OPENMP) and OPENMP not in os.environ.get("LD_LIBRARY_PATH", ""):
    os.environ["LD_LIBRARY_PATH"] = OPENMP + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import numpy as np
import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore", "scatter_reduce")  # still beta in 1.13


def tensor(folder, name):
    a = np.load(os.path.join(folder, name + ".npy"))
    return torch.from_numpy(a.astype(np.int64) if a.dtype == np.uint32 or a.dtype == np.uint64
                            else a.astype(np.float32) if a.dtype == np.float64 else a)


def weights(folder):
    """The f32 tensors of a safetensors file."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    w = {}
    for name, t in header.items():
        if name != "__metadata__" and t["dtype"] == "F32":
            begin, end = t["data_offsets"]
            w[name] = torch.from_numpy(np.frombuffer(data[begin:end], np.float32).copy()
                                       .reshape(t["shape"]))
    arch = json.loads(header["__metadata__"]["pare"])
    return w, len(arch["blocks"])


# ---- attention --------------------------------------------------------------------------------

def plain(q, k, v, mask):
    s = torch.matmul(q, k.transpose(1, 2))
    s.mul_(q.shape[2] ** -0.5)
    if mask is not None:
        s.masked_fill_(mask, float("-inf"))
    return torch.matmul(torch.softmax(s, -1), v)


def blocks(q, k, v, mask, size):
    """Rows in blocks: scores stay in the cache, and causal blocks leave out what is masked."""
    n, y = q.shape[1], torch.empty_like(q)
    for h in range(q.shape[0]):
        for i in range(0, n, size):
            e = min(i + size, n)
            keys = e if mask is not None else n
            s = torch.mm(q[h, i:e], k[h, :keys].t())
            s.mul_(q.shape[2] ** -0.5)
            if mask is not None:
                s[:, i:].masked_fill_(mask[i:e, i:e], float("-inf"))
            torch.mm(torch.softmax(s, -1), v[h, :keys], out=y[h, i:e])
    return y


def attention(case, folder):
    heads, n, d = case["heads"], case["n"], case["d"]
    q, k, v = [tensor(folder, x).view(n, heads, d).transpose(0, 1).contiguous() for x in "qkv"]
    causal = case["mask"] == "causal"
    mask = torch.ones(n, n, dtype=torch.bool).triu(1) if causal else None
    ways = {"plain": lambda: plain(q, k, v, mask)}
    for size in (128, 256):
        ways[f"blocks{size}"] = lambda size=size: blocks(q, k, v, mask, size)
    if hasattr(F, "scaled_dot_product_attention"):
        ways["sdpa"] = lambda: F.scaled_dot_product_attention(q[None], k[None], v[None],
                                                              is_causal=causal)[0]
    return ways, lambda y: y.transpose(0, 1).reshape(n, heads * d)


# ---- models -----------------------------------------------------------------------------------

def dense(case, folder):
    x, w, b = tensor(folder, "x"), tensor(folder, "w"), tensor(folder, "b")[0]
    return {"": lambda: F.linear(x, w, b)}, None


def graph(case, folder, w=None, training=False):
    """A graph transformer by edge lists: gather, score, softmax by segments, scatter."""
    w, layers = w or weights(folder)
    x, ptr, dst = tensor(folder, "x"), tensor(folder, "ptr")[0], tensor(folder, "idx")[0]
    n = x.shape[0]
    src = torch.repeat_interleave(torch.arange(n), ptr[1:] - ptr[:-1])

    def attend(h, b):
        q, k, v = [F.linear(h, w[b + "w" + c], w.get(b + "b" + c)) for c in "qkv"]
        s = (q.index_select(0, src) * k.index_select(0, dst)).sum(1) * q.shape[1] ** -0.5
        top = torch.full((n,), -1e30).scatter_reduce(0, src, s.detach(), "amax")
        e = torch.exp(s - top[src])
        total = torch.zeros(n).index_add(0, src, e)
        y = torch.zeros_like(v).index_add(0, src, (e / total[src]).unsqueeze(1)
                                          * v.index_select(0, dst))
        return F.linear(y, w[b + "wo"], w.get(b + "bo")) if b + "wo" in w else y

    def norm(h, b):
        return F.batch_norm(h, w[b + "mean"], w[b + "var"], w[b + "gain"], w[b + "bias"], training)

    def run():
        h = F.linear(x, w["embedding.map.weight"], w["embedding.map.bias"])
        for l in range(layers):
            a, f = f"blocks.{l}.attn.", f"blocks.{l}.ffn."
            h = norm(h + attend(h, a), a + "out_norm.")
            z = F.relu(F.linear(h, w[f + "0.weight"], w[f + "0.bias"]))
            h = norm(h + F.linear(z, w[f + "1.weight"], w[f + "1.bias"]), f + "out_norm.")
        return F.linear(h, w["head.out.weight"], w["head.out.bias"])

    return {"edges": run}, None


def gpt(case, folder, w=None, training=False):
    w, layers = w or weights(folder)
    ids, heads = tensor(folder, "ids"), case["heads"]
    batch, n = ids.shape
    mask = torch.ones(n, n, dtype=torch.bool).triu(1)
    # One product for queries, keys and values, as such models are stored.
    qkv = [[torch.cat([w[f"blocks.{l}.attn.{p}{c}"] for c in "qkv"]) for p in "wb"]
           for l in range(layers)]
    if training:
        for l in range(layers):
            for p, t in zip("wb", qkv[l]):
                w[f"blocks.{l}.attn.{p}qkv"] = t

    def norm(h, b):
        return F.layer_norm(h, (h.shape[-1],), w[b + "gain"], w[b + "bias"])

    def run():
        h = F.embedding(ids, w["embedding.embedding"]) + w["embedding.positions"][:n]
        dim = h.shape[-1]
        for l in range(layers):
            a, f = f"blocks.{l}.attn.", f"blocks.{l}.ffn."
            q, k, v = [t.view(batch, n, heads, dim // heads).transpose(1, 2)
                       for t in F.linear(norm(h, a + "in_norm."), *qkv[l]).split(dim, 2)]
            s = (q @ k.transpose(2, 3)) * (dim // heads) ** -0.5
            y = s.masked_fill(mask, float("-inf")).softmax(-1) @ v
            h = h + F.linear(y.transpose(1, 2).reshape(batch, n, dim), w[a + "wo"], w[a + "bo"])
            z = F.linear(norm(h, f + "in_norm."), w[f + "0.weight"], w[f + "0.bias"])
            h = h + F.linear(F.gelu(z, approximate="tanh"), w[f + "1.weight"], w[f + "1.bias"])
        return F.linear(norm(h, "head.norm."), w["embedding.embedding"])

    return {"": run}, None


# ---- training ----------------------------------------------------------------------------------

def train(case, folder):
    """One step of AdamW, forward, back and update; the rate is 0, so that all steps are alike. The
    result is the gradient, tensor by tensor as the file has them."""
    w, layers = weights(folder)
    names = [n for n in w if not n.endswith((".mean", ".var", ".freqs"))]
    labels = tensor(folder, "labels").view(-1)
    build = {"graph": graph, "gpt": gpt}[case["model"]]
    ways, _ = build(case, folder, (w, layers), training=True)
    run = next(iter(ways.values()))
    fused = [n for n in w if n.endswith("qkv")]
    params = {n: w[n] for n in names if not (fused and split_of(n))}
    params.update({n: w[n] for n in fused})
    for p in params.values():
        p.requires_grad_(True)
    opt = torch.optim.AdamW(params.values(), lr=0.0, weight_decay=0.01)

    def step():
        with torch.enable_grad():
            y = run()
            loss = F.cross_entropy(y.reshape(-1, y.shape[-1]), labels, ignore_index=-1)
            opt.zero_grad(set_to_none=True)
            loss.backward()
        opt.step()
        return params

    def gradient(_):
        parts = []
        for n in names:
            if n in params:
                parts.append(params[n].grad.reshape(-1))
            else:  # its third of the fused one
                whole, third = split_of(n)
                g = params[whole].grad
                parts.append(g.chunk(3)["qkv".index(third)].reshape(-1))
        return torch.cat(parts)

    return {next(iter(ways)): step}, gradient


def split_of(name):
    """blocks.0.attn.wk -> (blocks.0.attn.wqkv, k)"""
    stem, _, last = name.rpartition(".")
    if stem.endswith("attn") and len(last) == 2 and last[0] in "wb" and last[1] in "qkv":
        return f"{stem}.{last[0]}qkv", last[1]
    return None


# ---- answering --------------------------------------------------------------------------------

KINDS = {"attention": attention, "dense": dense, "graph": graph, "gpt": gpt,
         "train": train}


def timed(f, clock=time.perf_counter):
    start = clock()
    y = f()
    return 1e3 * (clock() - start), y


def set_threads(n):
    torch.set_num_threads(n)
    try:  # an OpenBLAS with threads of its own does not follow torch
        import ctypes
        ctypes.CDLL("libopenblas.so.0").openblas_set_num_threads(n)
    except (OSError, AttributeError):
        pass


class Peer:
    run = final = result = None
    cpu = False

    def clock(self):
        return time.process_time() if self.cpu else time.perf_counter()

    def load(self, threads, folder):
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as f:
            case = json.load(f)
        if case["kind"] not in KINDS:
            return "no such kind of work"
        set_threads(int(threads))
        ways, self.final = KINDS[case["kind"]](case, folder)
        name = next(iter(ways))
        if len(ways) > 1:
            name = min(ways, key=lambda w: (timed(ways[w], self.clock), timed(ways[w], self.clock))[1][0])
        self.run = ways[name]
        return f"ok {name}".rstrip()

    def time(self, n):
        times = []
        for _ in range(int(n)):
            t, self.result = timed(self.run, self.clock)
            times.append(f"{t:.6f}")
        return "ms " + " ".join(times)

    def save(self, path):
        y = self.final(self.result) if self.final else self.result
        np.save(path, y.contiguous().numpy())
        return "ok"


def main():
    peer = Peer()
    print("pare-peer 1 torch-" + torch.__version__.split("a")[0].split("+")[0], flush=True)
    with torch.no_grad():
        for line in sys.stdin:
            word, _, rest = line.rstrip("\n").partition(" ")
            try:
                if word == "load":
                    answer = peer.load(*rest.split(" ", 1))
                elif word == "run":
                    answer = peer.time(rest)
                elif word == "clock":
                    peer.cpu = rest == "cpu"
                    answer = "ok"
                elif word == "save":
                    answer = peer.save(rest)
                else:
                    answer = "what?"
            except Exception as e:  # the other side prints it
                answer = "failed: " + " ".join(f"{type(e).__name__}: {e}".split())[:300]
            print(answer, flush=True)
    sys.stdout.flush()
    os._exit(0)  # torch's own threads may not end


main()
