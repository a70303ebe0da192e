"""A bias for each column, fetched for every tile, then the exponential."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

TILE = 128


@nki.jit
def exp_bias(a, bias):
    height, width = a.shape
    result = nl.ndarray((height, width), dtype=a.dtype, buffer=nl.shared_hbm)
    p = nl.arange(TILE)[:, None]
    one = nl.arange(1)[:, None]
    f = nl.arange(width)[None, :]
    for k in nl.affine_range(height // TILE):
        left = nl.load(a[k * TILE + p, f])
        small = nl.load(bias[one, f])
        spread = nl.broadcast_to(small, shape=(TILE, width))
        shifted = nl.add(left, spread)
        raised = nl.exp(shifted)
        nl.store(result[k * TILE + p, f], value=raised)
    return result


shapes = [{"m": 128, "n": 256}]


def get_inputs(m=512, n=512):
    return [
        np.random.standard_normal((m, n)).astype(np.float32),
        np.random.standard_normal((1, n)).astype(np.float32),
    ]


def reference(a, bias):
    return np.exp(a + bias)
