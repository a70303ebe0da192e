# accelopt: problem=reference.py
"""Attention of grouped queries: scores of 128 queries with all keys, softmax, product with the values."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

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
    rows = nl.arange(TILE)[:, None]
    keys = nl.arange(TILE)[None, :]
    features = nl.arange(d)[None, :]
    for batch in nl.affine_range(batches):
        for head in nl.affine_range(query_heads):
            for qi in nl.affine_range(length // TILE):
                q_tile = nl.load(q[batch, qi * TILE + rows, head, features])
                scores = nl.ndarray((TILE, length), dtype=nl.float32, buffer=nl.sbuf)
                for ki in nl.affine_range(length // TILE):
                    k_tile = nl.load(k[batch, ki * TILE + rows, head // group, features])
                    k_turned = nl.copy(nl.transpose(k_tile))
                    product = nl.matmul(q_tile, k_turned)
                    scores[rows, ki * TILE + keys] = nl.multiply(product, scale)
                largest = nl.max(scores, axis=[1], keepdims=True)
                shifted = nl.subtract(scores, largest)
                powers = nl.exp(shifted)
                total = nl.sum(powers, axis=[1], keepdims=True)
                weights = nl.divide(powers, total)
                mixed = nl.zeros((TILE, d), dtype=nl.float32, buffer=nl.psum)
                for ki in nl.affine_range(length // TILE):
                    v_tile = nl.load(v[batch, ki * TILE + rows, head // group, features])
                    mixed += nl.matmul(weights[rows, ki * TILE + keys], v_tile)
                result = nl.copy(mixed, dtype=out.dtype)
                nl.store(out[batch, head, qi * TILE + rows, features], value=result)
    return out
