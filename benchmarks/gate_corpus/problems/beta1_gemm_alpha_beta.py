"""alpha * a.T @ b + beta * c, as BLAS has it; a is (k, m)."""

import numpy as np

entry = "gemm"
shapes = [{"m": 64, "n": 200, "k": 128}, {"m": 130, "n": 512, "k": 200}]


def get_inputs(m=256, n=512, k=256):
    a = np.random.standard_normal((k, m)).astype(np.float32)
    b = np.random.standard_normal((k, n)).astype(np.float32)
    c = np.random.standard_normal((m, n)).astype(np.float32)
    return [a, b, c, 1.0, 0.5]


def reference(a, b, c, alpha, beta):
    return alpha * (a.T @ b) + beta * c
