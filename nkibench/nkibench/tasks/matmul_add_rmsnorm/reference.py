"""A product, a residual addition and RMS norm with a weight: norm(x @ w + z) * g."""

import numpy as np

M = 4096
N = 2048
K = 2048

shapes = [
    {"M": 512, "N": 2048, "K": 256},
    {"M": 1024, "N": 1024, "K": 512},
]
tolerance = 2e-5


def normal(*shape):
    return np.random.normal(size=shape).astype(np.float32)


def get_inputs(M=M, N=N, K=K):
    x, w = normal(M, K), normal(K, N)
    z, g = normal(M, N), normal(N)
    return [x, w, 1e-5, z, g]


def forward(x, w, eps, z, g):
    y = x @ w + z
    root = np.sqrt(np.mean(np.square(y), axis=-1, keepdims=True) + y.dtype.type(eps))
    return y * g / root


def transform_to_nki_inputs(inputs):
    return inputs


def transform_nki_outputs(k_res, ref):
    return [k_res]
