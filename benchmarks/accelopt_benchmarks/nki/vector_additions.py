# mypy: ignore-errors
"""Additions of two vectors in tiles of several shapes, in the current NKI dialect.

A university's assignment for Trainium 2 publishes how long an addition takes by the shape of its tiles; its sources are
described there, not taken over. Lengths are those that the assignment states for each run.

- ``chunks``: a tile has one column and ``height`` rows.
- ``stream``: a tile has 128 rows and ``width`` columns.
"""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS = 128


def _add(result, one, other, rows, columns, height, width):
    left = nl.ndarray((height, width), dtype=one.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=one[rows : rows + height, columns : columns + width])
    right = nl.ndarray((height, width), dtype=one.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=right, src=other[rows : rows + height, columns : columns + width])
    total = nl.ndarray((height, width), dtype=one.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=left, data2=right, op=nl.add)
    nisa.dma_copy(dst=result[rows : rows + height, columns : columns + width], src=total)


@nki.jit
def chunks(one, other, height):
    result = nl.ndarray(one.shape, dtype=one.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(one.shape[0] // height):
        _add(result, one, other, i * height, 0, height, 1)
    return result


@nki.jit
def stream(one, other, width):
    result = nl.ndarray(one.shape, dtype=one.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(one.shape[1] // width):
        _add(result, one, other, 0, i * width, ROWS, width)
    return result
