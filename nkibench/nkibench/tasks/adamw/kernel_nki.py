# accelopt: problem=reference.py
"""One step of AdamW in tiles of 128 rows and 512 columns; the last rows may be fewer."""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS, COLUMNS = 128, 512


@nki.jit
def kernel(theta, g, m, v):
    """All tensors ``[M, N]``; any M, N a multiple of 512."""
    height, width = theta.shape
    out = nl.ndarray((height, width), dtype=theta.dtype, buffer=nl.shared_hbm)
    for i in range((height + ROWS - 1) // ROWS):
        first = i * ROWS
        rows = min(ROWS, height - first)
        for j in range(width // COLUMNS):
            theta_tile = nl.ndarray((rows, COLUMNS), dtype=theta.dtype, buffer=nl.sbuf)
            nisa.dma_copy(theta_tile, theta[nl.ds(first, rows), nl.ds(j * COLUMNS, COLUMNS)])
            g_tile = nl.ndarray((rows, COLUMNS), dtype=g.dtype, buffer=nl.sbuf)
            nisa.dma_copy(g_tile, g[nl.ds(first, rows), nl.ds(j * COLUMNS, COLUMNS)])
            m_tile = nl.ndarray((rows, COLUMNS), dtype=m.dtype, buffer=nl.sbuf)
            nisa.dma_copy(m_tile, m[nl.ds(first, rows), nl.ds(j * COLUMNS, COLUMNS)])
            v_tile = nl.ndarray((rows, COLUMNS), dtype=v.dtype, buffer=nl.sbuf)
            nisa.dma_copy(v_tile, v[nl.ds(first, rows), nl.ds(j * COLUMNS, COLUMNS)])

            m_old = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(m_old, m_tile, nl.multiply, 0.9)
            m_new = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(m_new, g_tile, nl.multiply, 0.1)
            momentum = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(momentum, m_old, m_new, nl.add)

            v_old = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(v_old, v_tile, nl.multiply, 0.999)
            squared = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(squared, g_tile, g_tile, nl.multiply)
            v_new = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(v_new, squared, nl.multiply, 0.001)
            variance = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(variance, v_old, v_new, nl.add)
            unbiased = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(unbiased, variance, nl.multiply, 1000.0)

            root = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(root, nl.sqrt, unbiased)
            denominator = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(denominator, root, nl.add, 1e-8)
            inverse = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.reciprocal(inverse, denominator)
            direction = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(direction, momentum, inverse, nl.multiply)
            step = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(step, direction, nl.multiply, 0.01)

            decay = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(decay, theta_tile, nl.multiply, 1e-5)
            decayed = nl.ndarray((rows, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(decayed, theta_tile, decay, nl.subtract)
            result = nl.ndarray((rows, COLUMNS), dtype=theta.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(result, decayed, step, nl.subtract)
            nisa.dma_copy(out[nl.ds(first, rows), nl.ds(j * COLUMNS, COLUMNS)], result)
    return out
