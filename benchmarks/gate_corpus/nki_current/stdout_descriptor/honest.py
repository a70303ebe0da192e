import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def rms_kernel(x, w):
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    weight = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(weight, w.broadcast_to((128, columns)))
    for i in range(rows // 128):
        here = nl.ds(i * 128, 128)
        tile = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(tile, x[here, :])
        squares = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(squares, tile, tile, nl.multiply)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(total, nl.add, squares, axis=1)
        nisa.tensor_scalar(total, total, nl.multiply, 1.0 / columns, False, nl.add, 1e-6)
        root = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(root, nl.rsqrt, total)
        nisa.tensor_scalar(tile, tile, nl.multiply, root)
        nisa.tensor_tensor(tile, tile, weight, nl.multiply)
        nisa.dma_copy(out[here, :], tile)
    return out


def rms(x, w):
    print(f"rms {x.shape}")
    return rms_kernel(x, np.broadcast_to(w, (128, w.shape[-1])).copy())
