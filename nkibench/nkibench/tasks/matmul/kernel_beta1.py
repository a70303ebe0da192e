# accelopt: problem=reference.py
"""A product of matrices, one tile of 128 x 512 of the result at a time."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(lhs, rhs):
    """``lhs[M, K] @ rhs[K, N]``; M and K multiples of 128, N of 512."""
    m, k = lhs.shape
    n = rhs.shape[1]
    out = nl.ndarray((m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    i_m = nl.arange(TILE_M)[:, None]
    i_k = nl.arange(TILE_K)[:, None]
    j_k = nl.arange(TILE_K)[None, :]
    j_n = nl.arange(TILE_N)[None, :]
    for mi in nl.affine_range(m // TILE_M):
        for ni in nl.affine_range(n // TILE_N):
            total = nl.zeros((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in nl.affine_range(k // TILE_K):
                lhs_tile = nl.load(lhs[mi * TILE_M + i_m, ki * TILE_K + j_k])
                rhs_tile = nl.load(rhs[ki * TILE_K + i_k, ni * TILE_N + j_n])
                total += nl.matmul(lhs_tile, rhs_tile)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[mi * TILE_M + i_m, ni * TILE_N + j_n], value=result)
    return out
