"""Products of two tensors, 128 by 512 elements at a time, and their exponential."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

STEP = 512


@nki.jit
def exp_product(a, b):
    height, width = a.shape
    product = nl.ndarray((height, width), dtype=a.dtype, buffer=nl.shared_hbm)
    for row in range(height // 128):
        for column in range(width // STEP):
            left = nl.ndarray((128, STEP), dtype=nl.float32, buffer=nl.sbuf)
            right = nl.ndarray((128, STEP), dtype=nl.float32, buffer=nl.sbuf)
            both = nl.ndarray((128, STEP), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(left, a[row * 128 : (row + 1) * 128, column * STEP : (column + 1) * STEP])
            nisa.dma_copy(right, b[row * 128 : (row + 1) * 128, column * STEP : (column + 1) * STEP])
            nisa.tensor_tensor(both, left, right, nl.multiply)
            nisa.activation(both, nl.exp, both)
            nisa.dma_copy(product[row * 128 : (row + 1) * 128, column * STEP : (column + 1) * STEP], both)
    return product


shapes = [{"m": 128, "n": 1024}]


def get_inputs(m=256, n=2048):
    return [
        np.random.standard_normal((m, n)).astype(np.float32),
        np.random.standard_normal((m, n)).astype(np.float32),
    ]


def reference(a, b):
    return np.exp(a * b)
