#!/usr/bin/env python3
"""A program at the other end of the pipe that answers one call wrongly: faulty.py FAULT [CALL], or
that can do more than others and does it well: faulty.py partial|bias|pair. It computes without
numpy, so that it runs everywhere."""
import math
import os
import signal
import struct
import sys
import time

FAULT, AT = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
FEATURES = {"partial": 1 | 8 | 16, "bias": 1 | 4 | 16}
done = 0


def get(n):
    b = sys.stdin.buffer.read(n)
    if len(b) < n:
        sys.exit(0)
    return b


def send(b):
    sys.stdout.buffer.write(b)
    sys.stdout.buffer.flush()


def put(kind, body):
    send(struct.pack("<IIQ", 0x45524150, kind, len(body)) + body)


def weights(q, k, i, n, dk, bias):
    s = [sum(q[i * dk + e] * k[j * dk + e] for e in range(dk)) for j in range(n)]
    if bias:
        s = [x + b for x, b in zip(s, bias)]
    top = max(s, default=-math.inf)
    return top, [math.exp(x - top) for x in s]


def attend(c, q, k, v, bias):
    """m, l, and rows: sums of a partial call, means of a plain one."""
    kind, nq, nk, dk, dv, flags, vis0 = c
    m, l, y = [], [], []
    for i in range(nq):
        n = i + 1 if flags & 1 else nk if kind == 1 else min(nk, max(0, vis0 + i))
        top, w = weights(q, k, i, n, dk, bias[i * nk:i * nk + n])
        m.append(top)
        l.append(sum(w))
        by = sum(w) if kind == 1 else 1
        y += [sum(w[j] * v[j * dv + e] for j in range(n)) / by for e in range(dv)]
    return m, l, y


def hello(body):
    version, tokens, size = struct.unpack_from("<3I", body)
    caps = [1, 1 | 2 | 16, tokens, 0, 0, 0, size, 0]
    if FAULT in FEATURES:
        caps[1] = FEATURES[FAULT]
    if FAULT == "pair":
        caps[5] = 2  # two calls in a frame
    if FAULT == "text":
        send(b"Welcome to the accelerator, version 3.\n")
    if FAULT == "mute":
        time.sleep(100)
    if FAULT == "absent":
        sys.exit(7)
    if FAULT == "version":
        caps[0] = 9
    if FAULT == "long":
        caps[2] = tokens + 1
    if FAULT == "f64":
        caps[6] = 8
    put(2, struct.pack("<8I3d", *caps, 104.0, 4.0, 2.0**-80))


def result(c, parts):
    nq, dv = c[1], c[4]
    m, l, y = attend(c, *parts)
    rows = nq
    if FAULT == "pair" and count > 2:
        sys.exit(9)
    if c[0] == 0:
        return struct.pack("<2I", nq, dv) + struct.pack(f"<{2 * nq + len(y)}f", *m, *l, *y)
    if done >= AT and FAULT == "nan":
        y = [math.nan] * len(y)
    if done == AT:
        if FAULT == "short":
            rows, y = nq - 1, y[:-dv]
        if FAULT == "narrow":
            return struct.pack("<2I", nq, dv - 1) + struct.pack(f"<{len(y)}f", *y)
        if FAULT == "die":
            sys.exit(3)
        if FAULT == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if FAULT == "hang":
            time.sleep(100)
        if FAULT == "no":
            put(5, struct.pack("<Q", done - first) + b"out of device memory")
            return None
    return struct.pack("<2I", rows, dv) + struct.pack(f"<{len(y)}f", *y)


def calls(body):
    global done, first, count
    count, at, out, first = struct.unpack_from("<I", body)[0], 8, [], done
    for _ in range(count):
        c = struct.unpack_from("<6Iq", body, at)
        at += 32
        parts = []
        for n in (c[1] * c[3], c[2] * c[3], c[2] * c[4], c[1] * c[2] if c[5] & 2 else 0):
            parts.append(struct.unpack_from(f"<{n}f", body, at))
            at += 4 * n
        r = result(c, parts)
        done += 1
        if r is None:
            return
        out.append(r)
    body = struct.pack("<2I", count - (FAULT == "few"), 0) + b"".join(out)
    if FAULT == "garbage":
        send(bytes(range(64)))
    elif FAULT == "cut":
        put(4, body[:-3])
    elif FAULT == "more":
        put(4, body + b"rest")
    elif FAULT == "kind":
        put(3, body)
    else:
        put(4, body)


while True:
    magic, kind, size = struct.unpack("<IIQ", get(16))
    (hello if kind == 1 else calls)(get(size))
