"""A decaying sum over blocks of 128 rows."""

import numpy as np

entry = "decayed"
shapes = [{"blocks": 3, "columns": 64}]


def get_inputs(blocks=6, columns=128):
    return [np.random.normal(size=(blocks * 128, columns)).astype(np.float32)]


def reference(x):
    n = x.shape[0] // 128
    rows = x.reshape(n, 128, -1)
    h = np.zeros_like(rows[0])
    for r in rows:
        h = 0.5 * h + r
    return h
