import numpy as np

entry = "scaled_exp"


def get_inputs(rows=256, columns=128):
    return [
        np.random.normal(size=(rows, columns)).astype(np.float32),
        np.random.normal(size=(1, columns)).astype(np.float32),
    ]


def reference(x, w):
    return np.exp(x) * w
