"""Products of a batch of matrices: lhs[b] @ rhs[b]."""

import numpy as np

B = 16
M = 4096
K = 64
N = 4096

shapes = [
    {"B": 2, "M": 512, "K": 64, "N": 2048},
    {"B": 4, "M": 1024, "K": 64, "N": 1024},
]
tolerance = 2e-5


def normal(*shape):
    return np.random.normal(size=shape).astype(np.float32)


def get_inputs(B=B, M=M, K=K, N=N):
    return [normal(B, M, K), normal(B, K, N)]


def forward(lhs, rhs):
    return lhs @ rhs


def transform_to_nki_inputs(inputs):
    return inputs


def transform_nki_outputs(k_res, ref):
    return [k_res]
