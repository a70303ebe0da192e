import numpy as np

entry = "axpy"
shapes = [{"rows": 128, "columns": 64}]


def get_inputs(rows=256, columns=512):
    return [np.random.normal(size=(rows, columns)).astype(np.float32) for _ in range(2)] + [0.37]


def reference(x, y, alpha):
    return alpha * x + y
