import numpy as np

entry = "squash"
shapes = [{"rows": 128, "columns": 64}]


def get_inputs(rows=256, columns=256):
    return [np.random.uniform(-1, 1, size=(rows, columns)).astype(np.float32)]


def reference(x):
    return np.tanh(x)
