# accelopt: problem=reference.py
"""Products of a batch of matrices and softmax: 128 whole rows are made, then normalised."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M, TILE_N = 128, 512


@nki.jit
def kernel(lhs, rhs):
    """``softmax(lhs[B, M, K] @ rhs[B, K, N])`` over N; M a multiple of 128, N of 512, K at most 128."""
    batches, m, k = lhs.shape
    n = rhs.shape[2]
    out = nl.ndarray((batches, m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    for batch in range(batches):
        for mi in range(m // TILE_M):
            logits = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.sbuf)
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
                nisa.tensor_copy(logits[:, nl.ds(ni * TILE_N, TILE_N)], product)
            largest = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(largest, nl.maximum, logits, axis=1)
            shifted = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(shifted, logits, nl.subtract, largest)
            powers = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(powers, nl.exp, shifted)
            total = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(total, nl.add, powers, axis=1)
            inverse = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.reciprocal(inverse, total)
            result = nl.ndarray((TILE_M, n), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_scalar(result, powers, nl.multiply, inverse)
            nisa.dma_copy(out[batch, nl.ds(mi * TILE_M, TILE_M), :], result)
    return out
