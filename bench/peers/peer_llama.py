#!/usr/bin/env python3
"""bench/peers/peer_llama.py LIBRARIES MODEL.bin TYPE [TOKENS] - llama.cpp as a peer of turns.py.

LIBRARIES is the folder with libllama and libggml (npm @node-llama-cpp/linux-x64), MODEL.bin a model
of llama2.c, TYPE f32, f16, q8_0 or q4_0: all matrices get it, by libggml's own quantizer. Answers
"run N" with N times "milliseconds per token", generated one by one from an empty cache, on one
thread."""
import ctypes as c
import glob
import os
import struct
import sys
import tempfile
import time

TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34)}


def library(folder, name):
    return c.CDLL(sorted(glob.glob(os.path.join(folder, name)))[0], mode=c.RTLD_GLOBAL)


# ---- GGUF, version 3: magic, counts, keys, tensor infos, data at multiples of 32 ------------------

def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def write_gguf(path, keys, tensors):
    """keys: (name, value); tensors: (name, shape with the rows first, ggml type, bytes)."""
    out = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(keys))]
    for name, v in keys:
        out.append(text(name))
        if isinstance(v, str):
            out.append(struct.pack("<I", 8) + text(v))
        elif isinstance(v, float):
            out.append(struct.pack("<If", 6, v))
        else:
            out.append(struct.pack("<II", 4, v))
    at = 0
    for name, shape, kind, data in tensors:
        out.append(text(name) + struct.pack("<I", len(shape)))
        out.append(b"".join(struct.pack("<Q", d) for d in reversed(shape)))
        out.append(struct.pack("<IQ", kind, at))
        at += (len(data) + 31) // 32 * 32
    head = b"".join(out)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32))
        for _, _, _, data in tensors:
            f.write(data + bytes(-len(data) % 32))


def convert(bin_path, gguf_path, kind, base):
    """llama2.c's file: seven numbers, then f32 arrays in a fixed order; a vocabulary above 0 says
    that the head is the embedding."""
    number, block, size = TYPES[kind]
    base.ggml_quantize_chunk.restype = c.c_size_t
    base.ggml_quantize_chunk.argtypes = [c.c_int, c.c_void_p, c.c_void_p, c.c_int64, c.c_int64,
                                         c.c_int64, c.c_void_p]
    with open(bin_path, "rb") as f:
        raw = f.read()
    dim, hidden, layers, heads, kv, vocab, context = struct.unpack("<7i", raw[:28])
    if vocab < 0:
        sys.exit("peer_llama.py: the head must be the embedding")
    at, tensors = 28, []

    def take(name, shape, matrix=True):
        nonlocal at
        n = 1
        for d in shape:
            n *= d
        data = raw[at:at + 4 * n]
        at += 4 * n
        if matrix and number:
            to = c.create_string_buffer(n // block * size)
            source = c.create_string_buffer(data, len(data))
            base.ggml_quantize_chunk(number, source, to, 0, n // shape[-1], shape[-1], None)
            data = to.raw
        tensors.append((name, shape, number if matrix else 0, data))

    def each(name, shape, matrix=True):
        for i in range(layers):
            take(f"blk.{i}.{name}.weight", shape, matrix)

    kv_dim = dim // heads * kv
    take("token_embd.weight", (vocab, dim))
    each("attn_norm", (dim,), False)
    each("attn_q", (dim, dim))
    each("attn_k", (kv_dim, dim))
    each("attn_v", (kv_dim, dim))
    each("attn_output", (dim, dim))
    each("ffn_norm", (dim,), False)
    each("ffn_gate", (hidden, dim))
    each("ffn_down", (dim, hidden))
    each("ffn_up", (hidden, dim))
    take("output_norm.weight", (dim,), False)
    write_gguf(gguf_path, [
        ("general.architecture", "llama"), ("llama.context_length", context),
        ("llama.embedding_length", dim), ("llama.block_count", layers),
        ("llama.feed_forward_length", hidden), ("llama.attention.head_count", heads),
        ("llama.attention.head_count_kv", kv), ("llama.rope.dimension_count", dim // heads),
        ("llama.attention.layer_norm_rms_epsilon", 1e-5), ("llama.vocab_size", vocab),
        ("tokenizer.ggml.model", "no_vocab")], tensors)
    return vocab


# ---- libllama: structures are passed whole, and only their beginnings are known here --------------

class Params(c.Structure):
    _fields_ = [("bytes", c.c_char * 512)]


class Batch(c.Structure):
    _fields_ = [("n_tokens", c.c_int32), ("token", c.POINTER(c.c_int32)), ("embd", c.c_void_p),
                ("pos", c.c_void_p), ("n_seq_id", c.c_void_p), ("seq_id", c.c_void_p),
                ("logits", c.c_void_p)]


def main():
    folder, bin_path, kind = sys.argv[1:4]
    tokens = int(sys.argv[4]) if len(sys.argv) > 4 else 32
    base = library(folder, "libggml-base*.so*")
    ggml = library(folder, "libggml.*so*")
    llama = library(folder, "libllama.*so*")
    quiet = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)(lambda *_: None)
    if not os.environ.get("LLAMA_VERBOSE"):
        llama.llama_log_set(quiet, None)
    ggml.ggml_backend_load_all_from_path(folder.encode())
    with tempfile.TemporaryDirectory() as there:
        path = os.path.join(there, "model.gguf")
        vocab = convert(bin_path, path, kind, base)
        llama.llama_model_default_params.restype = Params
        llama.llama_context_default_params.restype = Params
        for name, arguments in (("llama_model_load_from_file", [c.c_char_p, Params]),
                                ("llama_init_from_model", [c.c_void_p, Params]),
                                ("llama_get_memory", [c.c_void_p])):
            getattr(llama, name).restype = c.c_void_p
            getattr(llama, name).argtypes = arguments
        llama.llama_set_n_threads.argtypes = [c.c_void_p, c.c_int32, c.c_int32]
        llama.llama_memory_clear.argtypes = [c.c_void_p, c.c_bool]
        llama.llama_batch_get_one.restype = Batch
        llama.llama_batch_get_one.argtypes = [c.POINTER(c.c_int32), c.c_int32]
        llama.llama_decode.argtypes = [c.c_void_p, Batch]
        llama.llama_get_logits.restype = c.POINTER(c.c_float)
        llama.llama_get_logits.argtypes = [c.c_void_p]
        model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
        if not model:
            sys.exit("peer_llama.py: libllama refuses the model")
        params = llama.llama_context_default_params()
        raw = bytearray(c.string_at(c.byref(params), c.sizeof(params)))
        struct.pack_into("<I", raw, 0, 256)  # n_ctx
        params = Params.from_buffer_copy(bytes(raw))
        context = llama.llama_init_from_model(model, params)
    llama.llama_set_n_threads(context, 1, 1)
    memory = llama.llama_get_memory(context)
    ids = [(c.c_int32 * 1)((7919 * i + 1) % vocab) for i in range(tokens)]  # batches point to them
    batches = [llama.llama_batch_get_one(i, 1) for i in ids]
    sys.stdout.write("pare-peer 1 libllama-%s\n" % kind)
    sys.stdout.flush()
    for line in sys.stdin:
        word, *rest = line.split()
        if word != "run":
            break
        times = []
        for _ in range(int(rest[0])):
            llama.llama_memory_clear(memory, False)
            start = time.perf_counter()
            for b in batches:
                if llama.llama_decode(context, b):
                    sys.exit("peer_llama.py: llama_decode failed")
                llama.llama_get_logits(context)
            times.append("%.6f" % (1e3 * (time.perf_counter() - start) / tokens))
        sys.stdout.write("ms " + " ".join(times) + "\n")
        sys.stdout.flush()


main()
