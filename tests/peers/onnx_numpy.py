#!/usr/bin/env python3
"""An ONNX file evaluated by numpy in f64, read by a protobuf reader of its own: a second opinion
where no runtime is installed. onnx_numpy.py MODEL.onnx X.npy Y.npy, or MODEL.onnx alone to look at
the graph: every name is made once and before it is used."""
import math
import sys

import numpy as np

TYPES = {1: np.dtype("<f4"), 3: np.dtype("i1"), 7: np.dtype("<i8"), 11: np.dtype("<f8")}


def varint(b, at):
    n = shift = 0
    while True:
        n |= (b[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if b[at - 1] < 128:
            return n, at


def fields(b):
    """The fields of a message by number, each a list."""
    out, at = {}, 0
    while at < len(b):
        tag, at = varint(b, at)
        if tag & 7 == 0:
            v, at = varint(b, at)
            v = v - (1 << 64) if v >> 63 else v
        else:
            assert tag & 7 == 2, "wire type"
            n, at = varint(b, at)
            v, at = b[at:at + n], at + n
            assert len(v) == n, "a field is cut short"
        out.setdefault(tag >> 3, []).append(v)
    return out


def constant(b):
    f = fields(b)
    shape = f.get(1, [])
    if f[2][0] in (21, 22):  # two numbers of 4 bits in a byte, the first in the low ones
        b = np.frombuffer(f[9][0], np.uint8)
        v = np.stack([b & 15, b >> 4], 1).reshape(-1).astype(np.int8)
        assert v.size == math.prod(shape) + math.prod(shape) % 2, "a constant of another size"
        v = v[:math.prod(shape)]
        v = np.where((f[2][0] == 22) & (v > 7), v - 16, v)
    else:
        v = np.frombuffer(f[9][0], TYPES[f[2][0]])
    assert v.size == math.prod(shape), "a constant of another size"
    v = v.reshape(shape)
    return f[8][0].decode(), v if v.dtype == np.int64 else v.astype(np.float64)


def node(b):
    f = fields(b)
    attributes = {}
    for a in map(fields, f.get(5, [])):
        attributes[a[1][0].decode()] = a[8] if a[20][0] == 7 else a[3][0]
    return f[4][0].decode(), [x.decode() for x in f.get(1, [])], f[2][0].decode(), attributes


def softmax(v, axis):
    e = np.exp(v - v.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def cut(v, start, end, axis, step):
    at = [slice(None)] * v.ndim
    at[int(axis[0])] = slice(int(start[0]), int(end[0]), int(step[0]))
    return v[tuple(at)]


erf = np.vectorize(math.erf)
OPS = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "MatMul": np.matmul,
    "And": np.logical_and, "Or": np.logical_or, "Less": np.less, "Greater": np.greater,
    "LessOrEqual": np.less_equal, "Where": np.where, "Sqrt": np.sqrt, "Sin": np.sin,
    "Tanh": np.tanh, "Erf": erf, "Relu": lambda v: np.maximum(v, 0), "Identity": lambda v: v,
    "Sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "Shape": lambda v: np.array(v.shape), "Range": np.arange,
    "Expand": lambda v, s: np.broadcast_to(v, np.broadcast_shapes(v.shape, tuple(s))),
    "Reshape": lambda v, s: v.reshape([v.shape[i] if n == 0 else n for i, n in enumerate(s)]),
    "Unsqueeze": lambda v, a: np.expand_dims(v, tuple(int(i) for i in a)),
    "Squeeze": lambda v, a: np.squeeze(v, tuple(int(i) for i in a)),
    "Slice": cut,
    "Cast": lambda v, to: v.astype(np.float64),
    "Gather": lambda v, i, axis: np.take(v, i.astype(int), axis=axis),
    "Concat": lambda *v, axis: np.concatenate(v, axis=axis),
    "Transpose": lambda v, perm: np.transpose(v, perm),
    "Softmax": softmax,
    "DequantizeLinear": lambda v, s, axis: v * s.reshape([-1 if i == axis else 1 for i in range(v.ndim)]),
    "ReduceSum": lambda v, axes: v.sum(axis=tuple(int(i) for i in axes), keepdims=True),
    "ReduceMean": lambda v, axes: v.mean(axis=tuple(int(i) for i in axes), keepdims=True),
    "ReduceMax": lambda v, axes: v.max(axis=tuple(int(i) for i in axes), keepdims=True),
    "ReduceL2": lambda v, axes: np.sqrt((v * v).sum(axis=tuple(int(i) for i in axes), keepdims=True)),
    "Max": np.maximum,
}


def main(model, x=None, y=None):
    with open(model, "rb") as f:
        whole = fields(f.read())
    version = whole[1] + fields(whole[8][0])[2]
    assert version in ([8, 17], [10, 21]), "IR version or opset"
    graph = fields(whole[7][0])
    four = any(fields(t)[2][0] in (21, 22) for t in graph.get(5, []))
    assert four == (version == [10, 21]), "integers of 4 bits need opset 21"
    known = dict(map(constant, graph.get(5, [])))
    assert len(known) == len(graph.get(5, [])), "two constants of one name"
    inputs = [fields(v)[1][0].decode() for v in graph[11]]
    nodes = [node(n) for n in graph[1]]
    seen = set(known) | set(inputs)
    for op, ins, out, _ in nodes:
        assert op in OPS, op
        assert all(i in seen for i in ins), f"{out} comes before what it uses"
        assert out not in seen, f"{out} is made twice"
        seen.add(out)
    unused = set(known) - {i for n in nodes for i in n[1]}
    assert not unused, f"unused: {unused}"
    assert "y" in seen or "causal_y" in seen
    if x is None:
        print(len(nodes), "nodes,", len(known), "constants, inputs", ", ".join(inputs))
        return
    v = np.load(x)
    known[inputs[0]] = v[None] if v.ndim == (1 if v.dtype.kind == "i" else 2) else v
    for op, ins, out, attributes in nodes:
        known[out] = OPS[op](*(known[i] for i in ins), **attributes)
    np.save(y, known["y"])


main(*sys.argv[1:])
