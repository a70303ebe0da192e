# accelopt: problem=reference.py
"""128 rows of a product by tiles of 512 columns, then a residual addition and RMS norm of the rows."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(x, w, eps, z, g):
    """``norm(x[M, K] @ w[K, N] + z[M, N]) * g[N]``; M and K multiples of 128, N of 512."""
    m, k = x.shape
    n = w.shape[1]
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for mi in range(m // TILE_M):
        product = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.sbuf)
        for ni in range(n // TILE_N):
            total = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for ki in range(k // TILE_K):
                x_tile = nl.ndarray((TILE_M, TILE_K), dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(x_tile, x[nl.ds(mi * TILE_M, TILE_M), nl.ds(ki * TILE_K, TILE_K)])
                x_psum = nl.ndarray((TILE_K, TILE_M), dtype=x.dtype, buffer=nl.psum)
                nisa.nc_transpose(x_psum, x_tile)
                x_turned = nl.ndarray((TILE_K, TILE_M), dtype=x.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(x_turned, x_psum)
                w_tile = nl.ndarray((TILE_K, TILE_N), dtype=w.dtype, buffer=nl.sbuf)
                nisa.dma_copy(w_tile, w[nl.ds(ki * TILE_K, TILE_K), nl.ds(ni * TILE_N, TILE_N)])
                nisa.nc_matmul(total, x_turned, w_tile)
            nisa.tensor_copy(product[:, nl.ds(ni * TILE_N, TILE_N)], total)
        z_row = nl.ndarray((TILE_M, n), dtype=z.dtype, buffer=nl.sbuf)
        nisa.dma_copy(z_row, z[nl.ds(mi * TILE_M, TILE_M), :])
        y = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(y, product, z_row, nl.add)
        squares = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(squares, y, y, nl.multiply)
        total_square = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(total_square, nl.add, squares, axis=1)
        mean = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(mean, total_square, nl.multiply, 1.0 / n)
        shifted = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(shifted, mean, nl.add, eps)
        root = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(root, nl.sqrt, shifted)
        inverse = nl.ndarray((TILE_M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(inverse, root)
        normal = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(normal, y, nl.multiply, inverse)
        g_tile = nl.ndarray((TILE_M, n), dtype=g.dtype, buffer=nl.sbuf)
        nisa.dma_copy(g_tile, g.reshape((1, n)).broadcast(0, TILE_M))
        scaled = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(scaled, normal, g_tile, nl.multiply)
        nisa.dma_copy(out[nl.ds(mi * TILE_M, TILE_M), :], scaled)
    return out
