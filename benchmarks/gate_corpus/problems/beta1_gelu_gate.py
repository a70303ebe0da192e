"""GEGLU: gelu(x) * gate with the tanh form of GELU."""

import numpy as np

entry = "gelu_gate"
shapes = [{"m": 128, "n": 256}, {"m": 70, "n": 600}]


def get_inputs(m=256, n=1024):
    return [np.random.standard_normal((m, n)).astype(np.float32) for _ in range(2)]


def reference(x, gate):
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) * gate
