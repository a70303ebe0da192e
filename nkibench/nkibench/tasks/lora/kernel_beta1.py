# accelopt: problem=reference.py
"""A product and its low-rank addition; x @ a is made once for 128 rows, the rest by tiles of 128 x 512."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(x, w, a, b):
    """``x[M, K] @ w[K, N] + (x @ a[K, R]) @ b[R, N]``; M and K multiples of 128, N of 512, R at most 128."""
    m, k = x.shape
    n, rank = w.shape[1], a.shape[1]
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    i_m = nl.arange(TILE_M)[:, None]
    i_k = nl.arange(TILE_K)[:, None]
    i_r = nl.arange(rank)[:, None]
    j_k = nl.arange(TILE_K)[None, :]
    j_r = nl.arange(rank)[None, :]
    j_n = nl.arange(TILE_N)[None, :]
    for mi in nl.affine_range(m // TILE_M):
        low = nl.zeros((TILE_M, rank), dtype=nl.float32, buffer=nl.psum)
        for ki in nl.affine_range(k // TILE_K):
            x_part = nl.load(x[mi * TILE_M + i_m, ki * TILE_K + j_k])
            a_tile = nl.load(a[ki * TILE_K + i_k, j_r])
            low += nl.matmul(x_part, a_tile)
        low_rank = nl.copy(low, dtype=x.dtype)
        for ni in nl.affine_range(n // TILE_N):
            total = nl.zeros((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in nl.affine_range(k // TILE_K):
                x_tile = nl.load(x[mi * TILE_M + i_m, ki * TILE_K + j_k])
                w_tile = nl.load(w[ki * TILE_K + i_k, ni * TILE_N + j_n])
                total += nl.matmul(x_tile, w_tile)
            b_tile = nl.load(b[i_r, ni * TILE_N + j_n])
            total += nl.matmul(low_rank, b_tile)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[mi * TILE_M + i_m, ni * TILE_N + j_n], value=result)
    return out
