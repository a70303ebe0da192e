# accelopt: problem=reference.py
"""Products of a batch of matrices and softmax: 128 whole rows are made, then normalised."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

TILE_M, TILE_N = 128, 512


@nki.jit
def kernel(lhs, rhs):
    """``softmax(lhs[B, M, K] @ rhs[B, K, N])`` over N; M a multiple of 128, N of 512, K at most 128."""
    batches, m, k = lhs.shape
    n = rhs.shape[2]
    out = nl.ndarray((batches, m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    i_m = nl.arange(TILE_M)[:, None]
    i_k = nl.arange(k)[:, None]
    j_k = nl.arange(k)[None, :]
    j_n = nl.arange(TILE_N)[None, :]
    j_row = nl.arange(n)[None, :]
    for batch in nl.affine_range(batches):
        for mi in nl.affine_range(m // TILE_M):
            logits = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.sbuf)
            for ni in nl.affine_range(n // TILE_N):
                lhs_tile = nl.load(lhs[batch, mi * TILE_M + i_m, j_k])
                rhs_tile = nl.load(rhs[batch, i_k, ni * TILE_N + j_n])
                product = nl.matmul(lhs_tile, rhs_tile)
                logits[i_m, ni * TILE_N + j_n] = nl.copy(product)
            largest = nl.max(logits, axis=[1], keepdims=True)
            shifted = nl.subtract(logits, largest)
            powers = nl.exp(shifted)
            total = nl.sum(powers, axis=[1], keepdims=True)
            result = nl.divide(powers, total)
            nl.store(out[batch, mi * TILE_M + i_m, j_row], value=result)
    return out
