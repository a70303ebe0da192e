"""A scale for each column, fetched for every tile."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

PART = 128


@nki.jit
def scale_columns(x, weight):
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(PART)[:, None]
    first = nl.arange(1)[:, None]
    columns = nl.arange(n)[None, :]
    for i in nl.affine_range(m // PART):
        tile = nl.load(x[i * PART + rows, columns])
        row = nl.load(weight[first, columns])
        wide = nl.broadcast_to(row, shape=(PART, n))
        scaled = nl.multiply(tile, wide)
        nl.store(out[i * PART + rows, columns], value=scaled)
    return out


shapes = [{"m": 128, "n": 256}]


def get_inputs(m=512, n=512):
    return [
        np.random.standard_normal((m, n)).astype(np.float32),
        np.random.standard_normal((1, n)).astype(np.float32),
    ]


def reference(x, weight):
    return x * weight
