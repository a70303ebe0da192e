# accelopt: problem=reference.py
"""A gated feed-forward layer: 128 rows of the hidden layer are made and kept, then multiplied down."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(x, w_up, w_down, w_gate):
    """``(silu(x[M, K] @ w_gate[K, N]) * (x @ w_up[K, N])) @ w_down[N, K]``; M a multiple of 128, N and K of 512."""
    m, k = x.shape
    n = w_up.shape[1]
    out = nl.ndarray((m, k), dtype=x.dtype, buffer=nl.shared_hbm)
    for mi in range(m // TILE_M):
        hidden = nl.ndarray((TILE_M, n), dtype=x.dtype, buffer=nl.sbuf)
        for ni in range(n // TILE_N):
            up = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            gate = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in range(k // TILE_K):
                x_tile = nl.ndarray((TILE_M, TILE_K), dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(x_tile, x[nl.ds(mi * TILE_M, TILE_M), nl.ds(ki * TILE_K, TILE_K)])
                x_psum = nl.ndarray((TILE_K, TILE_M), dtype=x.dtype, buffer=nl.psum)
                nisa.nc_transpose(x_psum, x_tile)
                x_turned = nl.ndarray((TILE_K, TILE_M), dtype=x.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(x_turned, x_psum)
                up_tile = nl.ndarray((TILE_K, TILE_N), dtype=w_up.dtype, buffer=nl.sbuf)
                nisa.dma_copy(up_tile, w_up[nl.ds(ki * TILE_K, TILE_K), nl.ds(ni * TILE_N, TILE_N)])
                nisa.nc_matmul(up, x_turned, up_tile)
                gate_tile = nl.ndarray((TILE_K, TILE_N), dtype=w_gate.dtype, buffer=nl.sbuf)
                nisa.dma_copy(gate_tile, w_gate[nl.ds(ki * TILE_K, TILE_K), nl.ds(ni * TILE_N, TILE_N)])
                nisa.nc_matmul(gate, x_turned, gate_tile)
            power = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(power, nl.exp, gate, scale=-1.0)
            denominator = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(denominator, power, nl.add, 1.0)
            sigmoid = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.sbuf)
            nisa.reciprocal(sigmoid, denominator)
            activated = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(activated, gate, sigmoid, nl.multiply)
            nisa.tensor_tensor(hidden[:, nl.ds(ni * TILE_N, TILE_N)], activated, up, nl.multiply)
        for oi in range(k // TILE_N):
            total = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for hi in range(n // TILE_K):
                hidden_psum = nl.ndarray((TILE_K, TILE_M), dtype=x.dtype, buffer=nl.psum)
                nisa.nc_transpose(hidden_psum, hidden[:, nl.ds(hi * TILE_K, TILE_K)])
                hidden_turned = nl.ndarray((TILE_K, TILE_M), dtype=x.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(hidden_turned, hidden_psum)
                down_tile = nl.ndarray((TILE_K, TILE_N), dtype=w_down.dtype, buffer=nl.sbuf)
                nisa.dma_copy(down_tile, w_down[nl.ds(hi * TILE_K, TILE_K), nl.ds(oi * TILE_N, TILE_N)])
                nisa.nc_matmul(total, hidden_turned, down_tile)
            result = nl.ndarray((TILE_M, TILE_N), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(result, total)
            nisa.dma_copy(out[nl.ds(mi * TILE_M, TILE_M), nl.ds(oi * TILE_N, TILE_N)], result)
    return out
