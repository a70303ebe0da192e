import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def sum_kernel(x):
    rows, columns = x.shape
    out = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(rows // 128):
        here = nl.ds(i * 128, 128)
        total = nl.ndarray((128, 1), dtype=nl.float16, buffer=nl.sbuf)
        nisa.memset(total, 0.0)
        for j in range(columns // 128):
            tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, x[here, nl.ds(j * 128, 128)])
            part = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(part, nl.add, tile, axis=1)
            nisa.tensor_tensor(total, total, part, nl.add)
        whole = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(whole, total)
        nisa.dma_copy(out[here, :], whole)
    return out


def row_sum(x):
    return sum_kernel(x)
