"""The transpose of a matrix."""

import numpy as np

entry = "transpose"
shapes = [{"n": 128}, {"n": 384}]


def get_inputs(n=512):
    return [np.random.standard_normal((n, n)).astype(np.float32)]


def reference(x):
    return np.ascontiguousarray(x.T)
