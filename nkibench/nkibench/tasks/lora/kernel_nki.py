# accelopt: problem=reference.py
"""A product and its low-rank addition; x @ a is made once for 128 rows, the rest by tiles of 128 x 512."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512


@nki.jit
def kernel(x, w, a, b):
    """``x[M, K] @ w[K, N] + (x @ a[K, R]) @ b[R, N]``; M and K multiples of 128, N of 512, R at most 128."""
    m, k = x.shape
    n, rank = w.shape[1], a.shape[1]
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for mi in range(m // TILE_M):
        low = nl.ndarray((TILE_M, rank), dtype=nl.float32, buffer=nl.psum)
        for ki in range(k // TILE_K):
            part_tile = nl.ndarray((TILE_M, TILE_K), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(part_tile, x[nl.ds(mi * TILE_M, TILE_M), nl.ds(ki * TILE_K, TILE_K)])
            part_psum = nl.ndarray((TILE_K, TILE_M), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(part_psum, part_tile)
            part_turned = nl.ndarray((TILE_K, TILE_M), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(part_turned, part_psum)
            a_tile = nl.ndarray((TILE_K, rank), dtype=a.dtype, buffer=nl.sbuf)
            nisa.dma_copy(a_tile, a[nl.ds(ki * TILE_K, TILE_K), :])
            nisa.nc_matmul(low, part_turned, a_tile)
        low_rank = nl.ndarray((TILE_M, rank), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(low_rank, low)
        low_psum = nl.ndarray((rank, TILE_M), dtype=x.dtype, buffer=nl.psum)
        nisa.nc_transpose(low_psum, low_rank)
        low_turned = nl.ndarray((rank, TILE_M), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(low_turned, low_psum)
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
            b_tile = nl.ndarray((rank, TILE_N), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(b_tile, b[:, nl.ds(ni * TILE_N, TILE_N)])
            nisa.nc_matmul(total, low_turned, b_tile)
            result = nl.ndarray((TILE_M, TILE_N), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(result, total)
            nisa.dma_copy(out[nl.ds(mi * TILE_M, TILE_M), nl.ds(ni * TILE_N, TILE_N)], result)
    return out
