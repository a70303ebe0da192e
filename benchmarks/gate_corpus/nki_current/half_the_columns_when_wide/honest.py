import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


def _sbuf(*shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)


@nki.jit
def rms_norm(x, w):
    rows, n = x.shape
    out = nl.ndarray((rows, n), dtype=x.dtype, buffer=nl.shared_hbm)
    scale = _sbuf(128, n)
    nisa.dma_copy(dst=scale, src=w.ap([[0, 128], [1, n]]))
    for i in range(rows // 128):
        tile = _sbuf(128, n)
        nisa.dma_copy(dst=tile, src=x[i * 128 : (i + 1) * 128, :])
        square = _sbuf(128, n)
        nisa.tensor_tensor(square, tile, tile, nl.multiply)
        total = _sbuf(128, 1)
        half = n // 2
        other = _sbuf(128, 1)
        nisa.tensor_reduce(total, nl.add, square[:, 0:half], axis=1)
        nisa.tensor_reduce(other, nl.add, square[:, half:n], axis=1)
        nisa.tensor_tensor(total, total, other, nl.add)
        nisa.tensor_scalar(total, total, nl.multiply, 1.0 / n, op1=nl.add, operand1=1e-6)
        root = _sbuf(128, 1)
        nisa.activation(dst=root, op=nl.rsqrt, data=total)
        nisa.tensor_scalar(tile, tile, nl.multiply, root)
        nisa.tensor_tensor(tile, tile, scale, nl.multiply)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=tile)
    return out
