"""A linear layer with GELU (tanh form): gelu(x.T @ w + bias), x given as (in, tokens), bfloat16 with float32 sums."""

import ml_dtypes
import numpy as np

entry = "linear_gelu"
shapes = [{"k": 128, "m": 64, "n": 100}, {"k": 384, "m": 130, "n": 600}]


def get_inputs(k=256, m=256, n=512):
    x = np.random.standard_normal((k, m)).astype(ml_dtypes.bfloat16)
    w = (np.random.standard_normal((k, n)) / k**0.5).astype(ml_dtypes.bfloat16)
    bias = np.random.standard_normal((1, n)).astype(np.float32)
    return [x, w, bias]


def reference(x, w, bias):
    wide = np.float64 if x.dtype == np.float64 else np.float32
    y = x.astype(wide).T @ w.astype(wide) + bias
    return (0.5 * y * (1 + np.tanh((2 / np.pi) ** 0.5 * (y + 0.044715 * y**3)))).astype(x.dtype)
