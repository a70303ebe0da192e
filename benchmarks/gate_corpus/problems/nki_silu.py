"""SiLU, x * sigmoid(x)."""

import numpy as np

shapes = [{"rows": 128, "columns": 512}]


def get_inputs(rows=256, columns=1024):
    return [np.random.normal(size=(rows, columns)).astype(np.float32)]


def reference(x):
    return x / (1 + np.exp(-x))
