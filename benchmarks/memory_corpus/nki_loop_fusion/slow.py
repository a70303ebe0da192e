"""Two loops over the same tiles, with the result of the first in HBM."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

ROWS = 128


@nki.jit
def exp_scale(x, factor):
    m, n = x.shape
    middle = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.hbm)
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(ROWS)[:, None]
    columns = nl.arange(n)[None, :]
    for i in nl.affine_range(m // ROWS):
        tile = nl.load(x[i * ROWS + rows, columns])
        raised = nl.exp(tile)
        nl.store(middle[i * ROWS + rows, columns], value=raised)
    for i in nl.affine_range(m // ROWS):
        tile = nl.load(middle[i * ROWS + rows, columns])
        scaled = nl.multiply(tile, factor)
        nl.store(out[i * ROWS + rows, columns], value=scaled)
    return out


shapes = [{"m": 128, "n": 256}]


def get_inputs(m=512, n=512):
    return [np.random.standard_normal((m, n)).astype(np.float32), 0.5]


def reference(x, factor):
    return np.exp(x) * factor
