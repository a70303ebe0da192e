# mypy: ignore-errors
"""Three versions of one matrix product in the current NKI dialect, written after a published description.

AWS published profiles of three versions of a 4096 x 4096 x 4096 product in bf16 on trn2 (neuron-agentic-development,
"example bounds analysis"); their sources are described there, not taken over. The left operand comes transposed.

- ``naive``: one tile of each operand per product.
- ``blocked``: blocks of 8 row tiles by 2 column tiles; tiles as before, loaded once per block.
- ``rows``: the same blocks; each load brings a whole row of 1024 elements per partition.
"""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M, TILE_K, TILE_N = 128, 128, 512
BLOCK_M, BLOCK_N = 8, 2


def _tile(rows, columns, dtype):
    return nl.ndarray((rows, columns), dtype=dtype, buffer=nl.sbuf)


def _load(source, rows, columns, height, width):
    tile = _tile(height, width, source.dtype)
    nisa.dma_copy(dst=tile, src=source[rows : rows + height, columns : columns + width])
    return tile


def _bank():
    return nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)


def _write(result, bank, row, column):
    tile = _tile(TILE_M, TILE_N, result.dtype)
    nisa.tensor_copy(dst=tile, src=bank, engine=nisa.engine.vector)
    nisa.dma_copy(dst=result[row : row + TILE_M, column : column + TILE_N], src=tile)


@nki.jit
def naive(left_t, right):
    (depth, rows), columns = left_t.shape, right.shape[1]
    result = nl.ndarray((rows, columns), dtype=left_t.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(rows // TILE_M):
        for n in nl.affine_range(columns // TILE_N):
            bank = _bank()
            for k in nl.affine_range(depth // TILE_K):
                stationary = _load(left_t, k * TILE_K, m * TILE_M, TILE_K, TILE_M)
                moving = _load(right, k * TILE_K, n * TILE_N, TILE_K, TILE_N)
                nisa.nc_matmul(dst=bank, stationary=stationary, moving=moving)
            _write(result, bank, m * TILE_M, n * TILE_N)
    return result


@nki.jit
def blocked(left_t, right):
    (depth, rows), columns = left_t.shape, right.shape[1]
    result = nl.ndarray((rows, columns), dtype=left_t.dtype, buffer=nl.shared_hbm)
    steps = depth // TILE_K
    for m in nl.affine_range(rows // (TILE_M * BLOCK_M)):
        first = m * TILE_M * BLOCK_M
        lefts = [
            [_load(left_t, k * TILE_K, first + i * TILE_M, TILE_K, TILE_M) for k in range(steps)]
            for i in range(BLOCK_M)
        ]
        for n in nl.affine_range(columns // (TILE_N * BLOCK_N)):
            start = n * TILE_N * BLOCK_N
            rights = [
                [_load(right, k * TILE_K, start + j * TILE_N, TILE_K, TILE_N) for k in range(steps)]
                for j in range(BLOCK_N)
            ]
            for i in nl.affine_range(BLOCK_M):
                for j in nl.affine_range(BLOCK_N):
                    bank = _bank()
                    for k in nl.affine_range(steps):
                        nisa.nc_matmul(dst=bank, stationary=lefts[i][k], moving=rights[j][k])
                    _write(result, bank, first + i * TILE_M, start + j * TILE_N)
    return result


@nki.jit
def rows(left_t, right):
    (depth, height), columns = left_t.shape, right.shape[1]
    result = nl.ndarray((height, columns), dtype=left_t.dtype, buffer=nl.shared_hbm)
    steps, tall, wide = depth // TILE_K, TILE_M * BLOCK_M, TILE_N * BLOCK_N
    for m in nl.affine_range(height // tall):
        lefts = [_load(left_t, k * TILE_K, m * tall, TILE_K, tall) for k in range(steps)]
        for n in nl.affine_range(columns // wide):
            rights = [_load(right, k * TILE_K, n * wide, TILE_K, wide) for k in range(steps)]
            for i in nl.affine_range(BLOCK_M):
                for j in nl.affine_range(BLOCK_N):
                    bank = _bank()
                    for k in nl.affine_range(steps):
                        nisa.nc_matmul(
                            dst=bank,
                            stationary=lefts[k][:, i * TILE_M : (i + 1) * TILE_M],
                            moving=rights[k][:, j * TILE_N : (j + 1) * TILE_N],
                        )
                    _write(result, bank, m * tall + i * TILE_M, n * wide + j * TILE_N)
    return result
