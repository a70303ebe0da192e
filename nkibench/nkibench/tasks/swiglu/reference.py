"""A gated feed-forward layer: (silu(x @ w_gate) * (x @ w_up)) @ w_down."""

import numpy as np

M = 4096
N = 3072
K = 1024

shapes = [
    {"M": 512, "N": 1024, "K": 512},
    {"M": 512, "N": 1536, "K": 1024},
]
tolerance = 2e-5


def normal(*shape):
    return np.random.normal(size=shape).astype(np.float32)


def get_inputs(M=M, N=N, K=K):
    return [normal(M, K), normal(K, N), normal(N, K), normal(K, N)]


def forward(x, w_up, w_down, w_gate):
    gate = x @ w_gate
    return (gate / (1 + np.exp(-gate)) * (x @ w_up)) @ w_down


def transform_to_nki_inputs(inputs):
    return inputs


def transform_nki_outputs(k_res, ref):
    return [k_res]
