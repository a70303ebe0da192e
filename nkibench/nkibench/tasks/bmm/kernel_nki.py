# accelopt: problem=reference.py
"""Products of a batch of matrices, one tile of 128 x 512 of a result at a time."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M, TILE_N = 128, 512


@nki.jit
def kernel(lhs, rhs):
    """``lhs[B, M, K] @ rhs[B, K, N]``; M a multiple of 128, N of 512, K at most 128."""
    batches, m, k = lhs.shape
    n = rhs.shape[2]
    out = nl.ndarray((batches, m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    for batch in range(batches):
        for mi in range(m // TILE_M):
            for ni in range(n // TILE_N):
                lhs_tile = nl.ndarray((TILE_M, k), dtype=lhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(lhs_tile, lhs[batch, nl.ds(mi * TILE_M, TILE_M), :])
                lhs_psum = nl.ndarray((k, TILE_M), dtype=lhs.dtype, buffer=nl.psum)
                nisa.nc_transpose(lhs_psum, lhs_tile)
                lhs_turned = nl.ndarray((k, TILE_M), dtype=lhs.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(lhs_turned, lhs_psum)
                rhs_tile = nl.ndarray((k, TILE_N), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(rhs_tile, rhs[batch, :, nl.ds(ni * TILE_N, TILE_N)])
                product = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_matmul(product, lhs_turned, rhs_tile)
                result = nl.ndarray((TILE_M, TILE_N), dtype=out.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(result, product)
                nisa.dma_copy(out[batch, nl.ds(mi * TILE_M, TILE_M), nl.ds(ni * TILE_N, TILE_N)], result)
    return out
