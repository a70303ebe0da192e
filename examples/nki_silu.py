"""SiLU, x * sigmoid(x), step by step: one instruction for each operation, tiles of 128 x 512."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

ROWS, COLUMNS = 128, 512


@nki.jit
def silu(x):
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(ROWS)[:, None]
    columns = nl.arange(COLUMNS)[None, :]
    for i in nl.affine_range(m // ROWS):
        for j in nl.affine_range(n // COLUMNS):
            tile = nl.load(x[i * ROWS + rows, j * COLUMNS + columns])
            negated = nl.multiply(tile, -1.0)
            power = nl.exp(negated)
            denominator = nl.add(power, 1.0)
            result = nl.divide(tile, denominator)
            nl.store(out[i * ROWS + rows, j * COLUMNS + columns], value=result)
    return out


# The problem: what the kernel is profiled with, and what it has to compute.

shapes = [{"m": 128, "n": 1024}, {"m": 256, "n": 2048}]
tolerance = 2e-5


def get_inputs(m=4096, n=7168):
    return [np.random.default_rng(np.random.randint(1 << 31)).standard_normal((m, n), dtype=np.float32)]


def reference(x):
    return x / (1 + np.exp(-x))
