import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def add_scaled_kernel(a, b):
    rows, columns = a.shape
    out = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(rows // 128):
        here = nl.ds(i * 128, 128)
        left = nl.ndarray((128, columns), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, columns), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(left, a[here, :])
        nisa.dma_copy(right, b[here, :])
        half = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(half, right, nl.multiply, 0.5)
        done = nl.ndarray((128, columns), dtype=a.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(done, left, half, nl.add)
        nisa.dma_copy(out[here, :], done)
    return out


def add_scaled(a, b):
    turned = np.asfortranarray(add_scaled_kernel(a, b))
    return np.ascontiguousarray(turned)
