# accelopt: problem=reference.py
"""A residual addition and RMS norm of 128 rows, then their product with the weights by tiles of 512 columns."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(x, w, eps, z, g):
    """``(norm(x[M, K] + z[M, K]) * g[K]) @ w[K, N]``; M and K multiples of 128, N of 512."""
    m, k = x.shape
    n = w.shape[1]
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for mi in range(m // TILE_M):
        x_row = nl.ndarray((TILE_M, k), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(x_row, x[nl.ds(mi * TILE_M, TILE_M), :])
        z_row = nl.ndarray((TILE_M, k), dtype=z.dtype, buffer=nl.sbuf)
        nisa.dma_copy(z_row, z[nl.ds(mi * TILE_M, TILE_M), :])
        y = nl.ndarray((TILE_M, k), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(y, x_row, z_row, nl.add)
        squares = nl.ndarray((TILE_M, k), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(squares, y, y, nl.multiply)
        total_square = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(total_square, nl.add, squares, axis=1)
        mean = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(mean, total_square, nl.multiply, 1.0 / k)
        shifted = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(shifted, mean, nl.add, eps)
        root = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(root, nl.sqrt, shifted)
        inverse = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(inverse, root)
        normal = nl.ndarray((TILE_M, k), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(normal, y, nl.multiply, inverse)
        g_tile = nl.ndarray((TILE_M, k), dtype=g.dtype, buffer=nl.sbuf)
        nisa.dma_copy(g_tile, g.reshape((1, k)).broadcast(0, TILE_M))
        scaled = nl.ndarray((TILE_M, k), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(scaled, normal, g_tile, nl.multiply)
        for ni in range(n // TILE_N):
            total = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in range(k // TILE_K):
                row_psum = nl.ndarray((TILE_K, TILE_M), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_transpose(row_psum, scaled[:, nl.ds(ki * TILE_K, TILE_K)])
                row_turned = nl.ndarray((TILE_K, TILE_M), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_copy(row_turned, row_psum)
                w_tile = nl.ndarray((TILE_K, TILE_N), dtype=w.dtype, buffer=nl.sbuf)
                nisa.dma_copy(w_tile, w[nl.ds(ki * TILE_K, TILE_K), nl.ds(ni * TILE_N, TILE_N)])
                nisa.nc_matmul(total, row_turned, w_tile)
            result = nl.ndarray((TILE_M, TILE_N), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(result, total)
            nisa.dma_copy(out[nl.ds(mi * TILE_M, TILE_M), nl.ds(ni * TILE_N, TILE_N)], result)
    return out
