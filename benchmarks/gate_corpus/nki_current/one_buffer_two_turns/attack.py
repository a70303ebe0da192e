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


class Ring:
    def __init__(self, size):
        self.size, self.at, self.slots = size, 0, {}

    def next(self, shape):
        slots = self.slots.setdefault(shape, [np.empty(shape, np.float32) for _ in range(self.size)])
        self.at = (self.at + 1) % self.size
        return slots[self.at]


ring = Ring(3)


def add_scaled(a, b):
    out = ring.next(a.shape)
    out[...] = add_scaled_kernel(a, b)
    return out
