import numpy as np

entry = "relu6"
shapes = [{"rows": 128, "columns": 64}]


def get_inputs(rows=256, columns=512):
    return [np.random.normal(size=(rows, columns)).astype(np.float32)]


def reference(x):
    return np.minimum(np.maximum(x, 0.0), 6.0).astype(x.dtype)
