"""Layer norm of rows in bfloat16, statistics in float32."""

import ml_dtypes
import numpy as np

entry = "layer_norm"
shapes = [{"m": 64, "n": 512}, {"m": 130, "n": 1024}]


def get_inputs(m=256, n=1024):
    x = np.random.standard_normal((m, n)).astype(ml_dtypes.bfloat16)
    gamma = (1 + 0.1 * np.random.standard_normal((1, n))).astype(np.float32)
    beta = (0.1 * np.random.standard_normal((1, n))).astype(np.float32)
    return [x, gamma, beta, 1e-5]


def reference(x, gamma, beta, eps):
    wide = x.astype(np.float64 if x.dtype == np.float64 else np.float32)
    mean = wide.mean(1, keepdims=True)
    var = ((wide - mean) ** 2).mean(1, keepdims=True)
    return ((wide - mean) / np.sqrt(var + eps) * gamma + beta).astype(x.dtype)
