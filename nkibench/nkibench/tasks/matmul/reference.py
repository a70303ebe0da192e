"""A product of matrices: lhs @ rhs."""

import numpy as np

M = 4096
N = 12288
K = 5120

shapes = [
    {"M": 512, "N": 2048, "K": 512},
    {"M": 1024, "N": 1024, "K": 1024},
]
tolerance = 2e-5


def normal(*shape):
    return np.random.normal(size=shape).astype(np.float32)


def get_inputs(M=M, N=N, K=K):
    return [normal(M, K), normal(K, N)]


def forward(lhs, rhs):
    return lhs @ rhs


def transform_to_nki_inputs(inputs):
    return inputs


def transform_nki_outputs(k_res, ref):
    return [k_res]
