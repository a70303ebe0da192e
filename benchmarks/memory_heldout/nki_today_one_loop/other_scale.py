"""The exponential, then its half, each in its own loop over HBM."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def half_exp(a):
    height, width = a.shape
    between = nl.ndarray((height, width), dtype=a.dtype, buffer=nl.private_hbm)
    result = nl.ndarray((height, width), dtype=a.dtype, buffer=nl.shared_hbm)
    for k in range(height // 128):
        block = nl.ndarray((128, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(block, a[k * 128 : (k + 1) * 128, :])
        nisa.activation(block, nl.exp, block)
        nisa.dma_copy(between[k * 128 : (k + 1) * 128, :], block)
    for k in range(height // 128):
        block = nl.ndarray((128, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(block, between[k * 128 : (k + 1) * 128, :])
        nisa.tensor_scalar(block, block, nl.multiply, 0.5)
        nisa.dma_copy(result[k * 128 : (k + 1) * 128, :], block)
    return result


shapes = [{"m": 128, "n": 256}]


def get_inputs(m=512, n=512):
    return [np.random.standard_normal((m, n)).astype(np.float32)]


def reference(a):
    return np.exp(a) * 0.5
