"""RMS norm of rows with a weight."""

import numpy as np

entry = "rms_norm"
shapes = [{"m": 100, "n": 1024}, {"m": 300, "n": 1024}]


def get_inputs(m=256, n=1024, eps=1e-6):
    x = np.random.standard_normal((m, n)).astype(np.float32)
    weight = (1 + 0.1 * np.random.standard_normal((1, n))).astype(np.float32)
    return [x, weight, eps]


def reference(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + eps) * weight
