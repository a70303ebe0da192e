# accelopt: problem=reference.py
"""SiLU in tiles of 128 rows and 512 columns, one operation after another."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

ROWS, COLUMNS = 128, 512


@nki.jit
def kernel(x):
    """``x[M, N]``; M a multiple of 128, N of 512."""
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(ROWS)[:, None]
    columns = nl.arange(COLUMNS)[None, :]
    for i in nl.affine_range(m // ROWS):
        for j in nl.affine_range(n // COLUMNS):
            tile = nl.load(x[i * ROWS + rows, j * COLUMNS + columns])
            negative = nl.multiply(tile, -1.0)
            power = nl.exp(negative)
            denominator = nl.add(power, 1.0)
            result = nl.divide(tile, denominator)
            nl.store(out[i * ROWS + rows, j * COLUMNS + columns], value=result)
    return out
