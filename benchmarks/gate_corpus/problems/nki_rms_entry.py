import numpy as np

entry = "rms"
shapes = [{"rows": 128, "columns": 64}]


def get_inputs(rows=256, columns=512):
    return [
        np.random.normal(size=(rows, columns)).astype(np.float32),
        np.random.normal(size=(1, columns)).astype(np.float32),
    ]


def reference(x, w):
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6) * w
