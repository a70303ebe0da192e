"""a.T @ b over several blocks of 128 rows."""

import numpy as np

entry = "product"
shapes = [{"k": 256, "m": 128, "n": 128}]


def get_inputs(k=512, m=128, n=256):
    return [
        np.random.normal(size=(k, m)).astype(np.float32),
        np.random.normal(size=(k, n)).astype(np.float32),
    ]


def reference(a, b):
    return a.T @ b
