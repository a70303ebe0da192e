# accelopt: problem=reference.py
"""One step of AdamW in tiles of 128 rows and 512 columns; the last rows may be fewer."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

ROWS, COLUMNS = 128, 512


@nki.jit
def kernel(theta, g, m, v):
    """All tensors ``[M, N]``; any M, N a multiple of 512."""
    height, width = theta.shape
    out = nl.ndarray((height, width), dtype=theta.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(ROWS)[:, None]
    columns = nl.arange(COLUMNS)[None, :]
    for i in nl.affine_range((height + ROWS - 1) // ROWS):
        inside = i * ROWS + rows < height
        for j in nl.affine_range(width // COLUMNS):
            theta_tile = nl.load(theta[i * ROWS + rows, j * COLUMNS + columns], mask=inside)
            g_tile = nl.load(g[i * ROWS + rows, j * COLUMNS + columns], mask=inside)
            m_tile = nl.load(m[i * ROWS + rows, j * COLUMNS + columns], mask=inside)
            v_tile = nl.load(v[i * ROWS + rows, j * COLUMNS + columns], mask=inside)

            m_old = nl.multiply(m_tile, 0.9, mask=inside)
            m_new = nl.multiply(g_tile, 0.1, mask=inside)
            momentum = nl.add(m_old, m_new, mask=inside)

            v_old = nl.multiply(v_tile, 0.999, mask=inside)
            squared = nl.multiply(g_tile, g_tile, mask=inside)
            v_new = nl.multiply(squared, 0.001, mask=inside)
            variance = nl.add(v_old, v_new, mask=inside)
            unbiased = nl.multiply(variance, 1000.0, mask=inside)

            root = nl.sqrt(unbiased, mask=inside)
            denominator = nl.add(root, 1e-8, mask=inside)
            direction = nl.divide(momentum, denominator, mask=inside)
            step = nl.multiply(direction, 0.01, mask=inside)

            decay = nl.multiply(theta_tile, 1e-5, mask=inside)
            decayed = nl.subtract(theta_tile, decay, mask=inside)
            result = nl.subtract(decayed, step, mask=inside)
            nl.store(out[i * ROWS + rows, j * COLUMNS + columns], value=result, mask=inside)
    return out
