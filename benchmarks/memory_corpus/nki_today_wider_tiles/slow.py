"""Square roots of 128 by 256 tiles."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

WIDTH = 256


@nki.jit
def root(x):
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(m // 128):
        for j in range(n // WIDTH):
            tile = nl.ndarray((128, WIDTH), dtype=nl.float32, buffer=nl.sbuf)
            result = nl.ndarray((128, WIDTH), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(tile, x[i * 128 : (i + 1) * 128, j * WIDTH : (j + 1) * WIDTH])
            nisa.activation(result, nl.sqrt, tile)
            nisa.dma_copy(out[i * 128 : (i + 1) * 128, j * WIDTH : (j + 1) * WIDTH], result)
    return out


shapes = [{"m": 128, "n": 1024}]


def get_inputs(m=512, n=2048):
    return [np.random.uniform(0.5, 2.0, (m, n)).astype(np.float32)]


def reference(x):
    return np.sqrt(x)
