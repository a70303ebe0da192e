# accelopt: problem=reference.py
"""A product with a transposed first matrix, one tile of 128 x 512 of the result at a time."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(lhs, rhs):
    """``lhs[K, M].T @ rhs[K, N]``; K and M multiples of 128, any N."""
    k, m = lhs.shape
    n = rhs.shape[1]
    out = nl.ndarray((m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    i_m = nl.arange(TILE_M)[:, None]
    j_m = nl.arange(TILE_M)[None, :]
    i_k = nl.arange(TILE_K)[:, None]
    j_n = nl.arange(TILE_N)[None, :]
    for mi in nl.affine_range(m // TILE_M):
        for ni in nl.affine_range((n + TILE_N - 1) // TILE_N):
            inside = ni * TILE_N + j_n < n
            total = nl.zeros((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in nl.affine_range(k // TILE_K):
                lhs_tile = nl.load(lhs[ki * TILE_K + i_k, mi * TILE_M + j_m])
                rhs_tile = nl.load(rhs[ki * TILE_K + i_k, ni * TILE_N + j_n], mask=inside)
                total += nl.matmul(lhs_tile, rhs_tile, transpose_x=True, mask=inside)
            result = nl.copy(total, dtype=out.dtype, mask=inside)
            nl.store(out[mi * TILE_M + i_m, ni * TILE_N + j_n], value=result, mask=inside)
    return out
