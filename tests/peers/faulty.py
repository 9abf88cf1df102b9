#!/usr/bin/env python3
"""A program at the other end of the pipe that answers one call wrongly: faulty.py FAULT [CALL].
It computes plain attention without numpy, so that it runs everywhere."""
import math
import os
import signal
import struct
import sys
import time

FAULT, AT = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
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


def attend(q, k, v, n, dk, dv, causal):
    y = []
    for i in range(n):
        s = [sum(q[i * dk + e] * k[j * dk + e] for e in range(dk)) for j in range(i + 1 if causal else n)]
        top = max(s)
        w = [math.exp(x - top) for x in s]
        y += [sum(w[j] * v[j * dv + e] for j in range(len(w))) / sum(w) for e in range(dv)]
    return y


def hello(body):
    version, tokens, size = struct.unpack_from("<3I", body)
    caps = [1, 1 | 2 | 16, tokens, 0, 0, 0, size, 0]
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
    y = attend(*parts, nq, c[3], dv, c[5] & 1)
    rows = nq
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
    global done, first
    count, at, out, first = struct.unpack_from("<I", body)[0], 8, [], done
    for _ in range(count):
        c = struct.unpack_from("<6Iq", body, at)
        at += 32
        parts = []
        for n in (c[1] * c[3], c[2] * c[3], c[2] * c[4]):
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
