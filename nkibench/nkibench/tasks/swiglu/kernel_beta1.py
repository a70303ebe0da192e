# accelopt: problem=reference.py
"""A gated feed-forward layer: 128 rows of the hidden layer are made and kept, then multiplied down."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(x, w_up, w_down, w_gate):
    """``(silu(x[M, K] @ w_gate[K, N]) * (x @ w_up[K, N])) @ w_down[N, K]``; M a multiple of 128, N and K of 512."""
    m, k = x.shape
    n = w_up.shape[1]
    out = nl.ndarray((m, k), dtype=x.dtype, buffer=nl.shared_hbm)
    i_m = nl.arange(TILE_M)[:, None]
    i_k = nl.arange(TILE_K)[:, None]
    j_k = nl.arange(TILE_K)[None, :]
    j_n = nl.arange(TILE_N)[None, :]
    for mi in nl.affine_range(m // TILE_M):
        hidden = nl.ndarray((TILE_M, n), dtype=x.dtype, buffer=nl.sbuf)
        for ni in nl.affine_range(n // TILE_N):
            up = nl.zeros((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in nl.affine_range(k // TILE_K):
                x_tile = nl.load(x[mi * TILE_M + i_m, ki * TILE_K + j_k])
                up_tile = nl.load(w_up[ki * TILE_K + i_k, ni * TILE_N + j_n])
                up += nl.matmul(x_tile, up_tile)
            gate = nl.zeros((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in nl.affine_range(k // TILE_K):
                x_again = nl.load(x[mi * TILE_M + i_m, ki * TILE_K + j_k])
                gate_tile = nl.load(w_gate[ki * TILE_K + i_k, ni * TILE_N + j_n])
                gate += nl.matmul(x_again, gate_tile)
            negative = nl.multiply(gate, -1.0)
            power = nl.exp(negative)
            denominator = nl.add(power, 1.0)
            activated = nl.divide(gate, denominator)
            hidden[i_m, ni * TILE_N + j_n] = nl.multiply(activated, up)
        for oi in nl.affine_range(k // TILE_N):
            total = nl.zeros((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for hi in nl.affine_range(n // TILE_K):
                down_tile = nl.load(w_down[hi * TILE_K + i_k, oi * TILE_N + j_n])
                total += nl.matmul(hidden[i_m, hi * TILE_K + j_k], down_tile)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[mi * TILE_M + i_m, oi * TILE_N + j_n], value=result)
    return out
