# accelopt: problem=reference.py
"""Products of a batch of matrices, one tile of 128 x 512 of a result at a time."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

TILE_M, TILE_N = 128, 512


@nki.jit
def kernel(lhs, rhs):
    """``lhs[B, M, K] @ rhs[B, K, N]``; M a multiple of 128, N of 512, K at most 128."""
    batches, m, k = lhs.shape
    n = rhs.shape[2]
    out = nl.ndarray((batches, m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    i_m = nl.arange(TILE_M)[:, None]
    i_k = nl.arange(k)[:, None]
    j_k = nl.arange(k)[None, :]
    j_n = nl.arange(TILE_N)[None, :]
    for batch in nl.affine_range(batches):
        for mi in nl.affine_range(m // TILE_M):
            for ni in nl.affine_range(n // TILE_N):
                lhs_tile = nl.load(lhs[batch, mi * TILE_M + i_m, j_k])
                rhs_tile = nl.load(rhs[batch, i_k, ni * TILE_N + j_n])
                product = nl.matmul(lhs_tile, rhs_tile)
                result = nl.copy(product, dtype=out.dtype)
                nl.store(out[batch, mi * TILE_M + i_m, ni * TILE_N + j_n], value=result)
    return out
