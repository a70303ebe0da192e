"""Rotary position embedding of one frequency table: the halves of x are turned by cos and sin."""

import numpy as np

B = 1
H = 64
N = 4096
D = 128

shapes = [
    {"B": 1, "H": 2, "N": 4096, "D": 128},
    {"B": 2, "H": 2, "N": 2048, "D": 128},
]
tolerance = 2e-5


def normal(*shape):
    return np.random.normal(size=shape).astype(np.float32)


def get_inputs(B=B, H=H, N=N, D=D):
    columns = B * H * N
    return [normal(D, columns), normal(D // 2, columns), normal(D // 2, columns)]


def forward(x, freqs_cos, freqs_sin):
    """``x[D, B*H*N]``, ``freqs_cos`` and ``freqs_sin`` ``[D/2, B*H*N]`` to ``[D, B*H*N]``."""
    upper, lower = np.split(x, 2)
    return np.concatenate([upper * freqs_cos - lower * freqs_sin, upper * freqs_sin + lower * freqs_cos])


def transform_to_nki_inputs(inputs):
    return inputs


def transform_nki_outputs(k_res, ref):
    return [k_res]
