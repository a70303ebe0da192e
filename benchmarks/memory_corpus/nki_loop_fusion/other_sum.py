"""Squares, then a constant subtracted, in two loops."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

PARTITIONS = 128


@nki.jit
def square_shift(a, shift):
    height, width = a.shape
    squares = nl.ndarray((height, width), dtype=a.dtype, buffer=nl.hbm)
    result = nl.ndarray((height, width), dtype=a.dtype, buffer=nl.shared_hbm)
    p = nl.arange(PARTITIONS)[:, None]
    f = nl.arange(width)[None, :]
    for k in nl.affine_range(height // PARTITIONS):
        left = nl.load(a[k * PARTITIONS + p, f])
        product = nl.multiply(left, left)
        nl.store(squares[k * PARTITIONS + p, f], value=product)
    for k in nl.affine_range(height // PARTITIONS):
        right = nl.load(squares[k * PARTITIONS + p, f])
        less = nl.subtract(right, shift)
        nl.store(result[k * PARTITIONS + p, f], value=less)
    return result


shapes = [{"m": 128, "n": 256}]


def get_inputs(m=512, n=512):
    return [np.random.standard_normal((m, n)).astype(np.float32), 0.25]


def reference(a, shift):
    return a * a - shift
