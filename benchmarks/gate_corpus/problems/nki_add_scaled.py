"""a + 0.5 * b."""

import numpy as np

shapes = [{"rows": 128, "columns": 256}]


def get_inputs(rows=256, columns=512):
    return [np.random.normal(size=(rows, columns)).astype(np.float32) for _ in range(2)]


def reference(a, b):
    return a + 0.5 * b
