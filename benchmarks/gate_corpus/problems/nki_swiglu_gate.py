"""SwiGLU: gate * sigmoid(gate) * up."""

import numpy as np

entry = "swiglu"
shapes = [{"m": 64, "n": 300}, {"m": 200, "n": 512}]


def get_inputs(m=256, n=1024):
    return [np.random.standard_normal((m, n)).astype(np.float32) for _ in range(2)]


def reference(gate, up):
    return gate / (1 + np.exp(-gate)) * up
