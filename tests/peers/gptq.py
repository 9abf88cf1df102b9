#!/usr/bin/env python3
"""gptq.py FOLDER - GPTQ (Frantar et al. 2023) in numpy, from the paper's algorithm: the Cholesky
factor of the inverse Hessian, columns with the largest diagonal first. Reads w, h (moments), scale,
offset, and the integers q of another program (.npy) and group, least, most, ridge (numbers.txt);
prints how many integers differ and what each leaves of the outputs."""
import sys

import numpy as np

folder = sys.argv[1]
w, h, scale, offset, theirs = (np.load(f"{folder}/{name}.npy").astype(np.float64)
                               for name in ("w", "h", "scale", "offset", "q"))
group, least, most, ridge = (float(x) for x in open(f"{folder}/numbers.txt").read().split())

damped = h + ridge * np.mean(np.diag(h)) * np.eye(len(h))
order = np.argsort(-np.diag(h), kind="stable")
factor = np.linalg.cholesky(np.linalg.inv(damped[np.ix_(order, order)])).T  # upper: U^T U = H^-1
open_w, ours = w[:, order].copy(), np.zeros_like(w)
for k, column in enumerate(order):
    g = int(column // group)
    q = np.clip(np.rint((open_w[:, k] - offset[:, g]) / scale[:, g]), least, most)
    ours[:, column] = q
    stands = (scale[:, g].astype(np.float32) * q.astype(np.float32)).astype(np.float32) + \
        offset[:, g].astype(np.float32)
    error = (open_w[:, k] - stands) / factor[k, k]
    open_w[:, k + 1:] -= np.outer(error, factor[k, k + 1:])


def left(q):
    """sum of e^T H e over the rows, of what the integers stand for."""
    columns = (np.arange(w.shape[1]) // group).astype(int)
    e = w - scale[:, columns] * q - offset[:, columns]
    return float(np.sum((e @ h) * e))


plain = np.clip(np.rint((w - np.repeat(offset, int(group), 1)[:, :w.shape[1]]) /
                        np.repeat(scale, int(group), 1)[:, :w.shape[1]]), least, most)
print(int(np.sum(ours != theirs)), left(theirs), left(ours), left(plain))
