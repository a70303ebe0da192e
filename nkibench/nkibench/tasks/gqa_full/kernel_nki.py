# accelopt: problem=reference.py
"""Attention of grouped queries: scores of 128 queries with all keys, softmax, product with the values."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE = 128


@nki.jit
def kernel(q, k, v):
    """``q[B, N, QH, D]``, ``k`` and ``v`` ``[B, N, KH, D]`` to ``[B, QH, N, D]``.

    N is a multiple of 128, D at most 128.
    """
    batches, length, query_heads, d = q.shape
    group = query_heads // k.shape[2]
    scale = float(d) ** -0.5
    out = nl.ndarray((batches, query_heads, length, d), dtype=q.dtype, buffer=nl.shared_hbm)
    for batch in range(batches):
        for head in range(query_heads):
            for qi in range(length // TILE):
                q_tile = nl.ndarray((TILE, d), dtype=q.dtype, buffer=nl.sbuf)
                nisa.dma_copy(q_tile, q[batch, nl.ds(qi * TILE, TILE), head, :])
                q_psum = nl.ndarray((d, TILE), dtype=q.dtype, buffer=nl.psum)
                nisa.nc_transpose(q_psum, q_tile)
                q_turned = nl.ndarray((d, TILE), dtype=q.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(q_turned, q_psum)
                scores = nl.ndarray((TILE, length), dtype=nl.float32, buffer=nl.sbuf)
                for ki in range(length // TILE):
                    k_tile = nl.ndarray((TILE, d), dtype=k.dtype, buffer=nl.sbuf)
                    nisa.dma_copy(k_tile, k[batch, nl.ds(ki * TILE, TILE), head // group, :])
                    k_psum = nl.ndarray((d, TILE), dtype=k.dtype, buffer=nl.psum)
                    nisa.nc_transpose(k_psum, k_tile)
                    k_turned = nl.ndarray((d, TILE), dtype=k.dtype, buffer=nl.sbuf)
                    nisa.tensor_copy(k_turned, k_psum)
                    product = nl.ndarray((TILE, TILE), dtype=nl.float32, buffer=nl.psum)
                    nisa.nc_matmul(product, q_turned, k_turned)
                    nisa.tensor_scalar(scores[:, nl.ds(ki * TILE, TILE)], product, nl.multiply, scale)
                largest = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_reduce(largest, nl.maximum, scores, axis=1)
                shifted = nl.ndarray((TILE, length), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_scalar(shifted, scores, nl.subtract, largest)
                powers = nl.ndarray((TILE, length), dtype=nl.float32, buffer=nl.sbuf)
                nisa.activation(powers, nl.exp, shifted)
                total = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_reduce(total, nl.add, powers, axis=1)
                inverse = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
                nisa.reciprocal(inverse, total)
                weights = nl.ndarray((TILE, length), dtype=q.dtype, buffer=nl.sbuf)
                nisa.tensor_scalar(weights, powers, nl.multiply, inverse)
                mixed = nl.ndarray((TILE, d), dtype=nl.float32, buffer=nl.psum)
                for ki in range(length // TILE):
                    weights_psum = nl.ndarray((TILE, TILE), dtype=q.dtype, buffer=nl.psum)
                    nisa.nc_transpose(weights_psum, weights[:, nl.ds(ki * TILE, TILE)])
                    weights_turned = nl.ndarray((TILE, TILE), dtype=q.dtype, buffer=nl.sbuf)
                    nisa.tensor_copy(weights_turned, weights_psum)
                    v_tile = nl.ndarray((TILE, d), dtype=v.dtype, buffer=nl.sbuf)
                    nisa.dma_copy(v_tile, v[batch, nl.ds(ki * TILE, TILE), head // group, :])
                    nisa.nc_matmul(mixed, weights_turned, v_tile)
                result = nl.ndarray((TILE, d), dtype=out.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(result, mixed)
                nisa.dma_copy(out[batch, head, nl.ds(qi * TILE, TILE), :], result)
    return out
