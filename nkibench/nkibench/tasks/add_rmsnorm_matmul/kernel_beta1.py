# accelopt: problem=reference.py
"""A residual addition and RMS norm of 128 rows, then their product with the weights by tiles of 512 columns."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(x, w, eps, z, g):
    """``(norm(x[M, K] + z[M, K]) * g[K]) @ w[K, N]``; M and K multiples of 128, N of 512."""
    m, k = x.shape
    n = w.shape[1]
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    i_m = nl.arange(TILE_M)[:, None]
    i_k = nl.arange(TILE_K)[:, None]
    i_one = nl.arange(1)[:, None]
    j_k = nl.arange(TILE_K)[None, :]
    j_n = nl.arange(TILE_N)[None, :]
    j_row = nl.arange(k)[None, :]
    for mi in nl.affine_range(m // TILE_M):
        x_row = nl.load(x[mi * TILE_M + i_m, j_row])
        z_row = nl.load(z[mi * TILE_M + i_m, j_row])
        y = nl.add(x_row, z_row)
        squares = nl.multiply(y, y)
        total_square = nl.sum(squares, axis=[1], keepdims=True)
        mean = nl.multiply(total_square, 1.0 / k)
        shifted = nl.add(mean, eps)
        root = nl.sqrt(shifted)
        normal = nl.divide(y, root)
        g_row = nl.load(g.reshape((1, k))[i_one, j_row])
        g_tile = nl.broadcast_to(g_row, shape=(TILE_M, k))
        scaled = nl.multiply(normal, g_tile)
        for ni in nl.affine_range(n // TILE_N):
            total = nl.zeros((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in nl.affine_range(k // TILE_K):
                w_tile = nl.load(w[ki * TILE_K + i_k, ni * TILE_N + j_n])
                total += nl.matmul(scaled[i_m, ki * TILE_K + j_k], w_tile)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[mi * TILE_M + i_m, ni * TILE_N + j_n], value=result)
    return out
