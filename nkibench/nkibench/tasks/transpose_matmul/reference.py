"""A product with the first matrix given transposed: lhs.T @ rhs."""

import numpy as np

M = 4096
N = 10944
K = 2048

shapes = [
    {"M": 512, "N": 1368, "K": 512},
    {"M": 1024, "N": 912, "K": 1024},
]
tolerance = 2e-5


def normal(*shape):
    return np.random.normal(size=shape).astype(np.float32)


def get_inputs(M=M, N=N, K=K):
    return [normal(K, M), normal(K, N)]


def forward(lhs, rhs):
    return lhs.T @ rhs


def transform_to_nki_inputs(inputs):
    return inputs


def transform_nki_outputs(k_res, ref):
    return [k_res]
