import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def normalise(x):
    rows, n = x.shape
    out = nl.ndarray((rows, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(rows // 128):
        tile = nl.ndarray((128, n), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[i * 128 : (i + 1) * 128, :])
        low = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        high = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(high, nl.maximum, tile, axis=1)
        nisa.tensor_reduce(low, nl.minimum, tile, axis=1)
        nisa.tensor_scalar(low, low, nl.minimum, 0.0)
        nisa.tensor_scalar(tile, tile, nl.subtract, low)
        nisa.tensor_tensor(high, high, low, nl.subtract)
        nisa.tensor_scalar(high, high, nl.add, 1e-5)
        nisa.reciprocal(high, high)
        nisa.tensor_scalar(tile, tile, nl.multiply, high)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=tile)
    return out
