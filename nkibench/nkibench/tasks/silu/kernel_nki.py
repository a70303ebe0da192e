# accelopt: problem=reference.py
"""SiLU in tiles of 128 rows and 512 columns, one operation after another."""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS, COLUMNS = 128, 512


@nki.jit
def kernel(x):
    """``x[M, N]``; M a multiple of 128, N of 512."""
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(m // ROWS):
        for j in range(n // COLUMNS):
            tile = nl.ndarray((ROWS, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, x[nl.ds(i * ROWS, ROWS), nl.ds(j * COLUMNS, COLUMNS)])
            power = nl.ndarray((ROWS, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(power, nl.exp, tile, scale=-1.0)
            denominator = nl.ndarray((ROWS, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(denominator, power, nl.add, 1.0)
            sigmoid = nl.ndarray((ROWS, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.reciprocal(sigmoid, denominator)
            result = nl.ndarray((ROWS, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(result, tile, sigmoid, nl.multiply)
            nisa.dma_copy(out[nl.ds(i * ROWS, ROWS), nl.ds(j * COLUMNS, COLUMNS)], result)
    return out
