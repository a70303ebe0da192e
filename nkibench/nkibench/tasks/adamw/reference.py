"""The first step of AdamW: learning rate 0.01, betas 0.9 and 0.999, weight decay 1e-3 times the rate."""

import numpy as np

M = 10944
N = 2048

shapes = [
    {"M": 256, "N": 2048},
    {"M": 200, "N": 2048},
]
tolerance = 2e-6  # 2e-5, as published, would let a missing weight decay pass


def normal(*shape):
    return np.random.normal(size=shape).astype(np.float32)


def get_inputs(M=M, N=N):
    theta, g, m = normal(M, N), normal(M, N), normal(M, N)
    v = np.abs(normal(M, N))
    return [theta, g, m, v]


def forward(theta, g, m, v):
    momentum = 0.9 * m + 0.1 * g
    variance = 0.999 * v + 0.001 * g * g
    unbiased = variance * 1000
    decayed = theta - 1e-5 * theta
    return decayed - 0.01 * momentum / (np.sqrt(unbiased) + 1e-8)


def transform_to_nki_inputs(inputs):
    return inputs


def transform_nki_outputs(k_res, ref):
    return [k_res]
