"""A square and a hyperbolic tangent, each in its own loop over HBM."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def square_exp(x):
    m, n = x.shape
    middle = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.private_hbm)
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(m // 128):
        tile = nl.ndarray((128, n), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(tile, x[i * 128 : (i + 1) * 128, :])
        nisa.activation(tile, nl.square, tile)
        nisa.dma_copy(middle[i * 128 : (i + 1) * 128, :], tile)
    for i in range(m // 128):
        tile = nl.ndarray((128, n), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(tile, middle[i * 128 : (i + 1) * 128, :])
        nisa.activation(tile, nl.tanh, tile)
        nisa.dma_copy(out[i * 128 : (i + 1) * 128, :], tile)
    return out


shapes = [{"m": 128, "n": 256}]


def get_inputs(m=512, n=512):
    return [np.random.standard_normal((m, n)).astype(np.float32)]


def reference(x):
    return np.tanh(x * x)
