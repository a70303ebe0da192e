# accelopt: problem=reference.py
"""A product of matrices, one tile of 128 x 512 of the result at a time."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(lhs, rhs):
    """``lhs[M, K] @ rhs[K, N]``; M and K multiples of 128, N of 512."""
    m, k = lhs.shape
    n = rhs.shape[1]
    out = nl.ndarray((m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    for mi in range(m // TILE_M):
        for ni in range(n // TILE_N):
            total = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in range(k // TILE_K):
                lhs_tile = nl.ndarray((TILE_M, TILE_K), dtype=lhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(lhs_tile, lhs[nl.ds(mi * TILE_M, TILE_M), nl.ds(ki * TILE_K, TILE_K)])
                lhs_psum = nl.ndarray((TILE_K, TILE_M), dtype=lhs.dtype, buffer=nl.psum)
                nisa.nc_transpose(lhs_psum, lhs_tile)
                lhs_turned = nl.ndarray((TILE_K, TILE_M), dtype=lhs.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(lhs_turned, lhs_psum)
                rhs_tile = nl.ndarray((TILE_K, TILE_N), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(rhs_tile, rhs[nl.ds(ki * TILE_K, TILE_K), nl.ds(ni * TILE_N, TILE_N)])
                nisa.nc_matmul(total, lhs_turned, rhs_tile)
            result = nl.ndarray((TILE_M, TILE_N), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(result, total)
            nisa.dma_copy(out[nl.ds(mi * TILE_M, TILE_M), nl.ds(ni * TILE_N, TILE_N)], result)
    return out
