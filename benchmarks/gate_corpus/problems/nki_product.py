"""a.T @ b, with the contraction along the partitions."""

import numpy as np

shapes = [{"k": 128, "m": 128, "n": 256}]


def get_inputs(k=256, m=128, n=512):
    return [
        np.random.normal(size=(k, m)).astype(np.float32),
        np.random.normal(size=(k, n)).astype(np.float32),
    ]


def reference(a, b):
    return a.T @ b
