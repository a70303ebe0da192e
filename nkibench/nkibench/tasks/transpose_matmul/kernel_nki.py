# accelopt: problem=reference.py
"""A product with a transposed first matrix, one tile of 128 x 512 of the result at a time."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(lhs, rhs):
    """``lhs[K, M].T @ rhs[K, N]``; K and M multiples of 128, any N."""
    k, m = lhs.shape
    n = rhs.shape[1]
    out = nl.ndarray((m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    for mi in range(m // TILE_M):
        for ni in range((n + TILE_N - 1) // TILE_N):
            first = ni * TILE_N
            columns = min(TILE_N, n - first)
            total = nl.ndarray((TILE_M, columns), dtype=nl.float32, buffer=nl.psum)
            for ki in range(k // TILE_K):
                lhs_tile = nl.ndarray((TILE_K, TILE_M), dtype=lhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(lhs_tile, lhs[nl.ds(ki * TILE_K, TILE_K), nl.ds(mi * TILE_M, TILE_M)])
                rhs_tile = nl.ndarray((TILE_K, columns), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(rhs_tile, rhs[nl.ds(ki * TILE_K, TILE_K), nl.ds(first, columns)])
                nisa.nc_matmul(total, lhs_tile, rhs_tile)
            result = nl.ndarray((TILE_M, columns), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(result, total)
            nisa.dma_copy(out[nl.ds(mi * TILE_M, TILE_M), nl.ds(first, columns)], result)
    return out
