# mypy: ignore-errors
"""Additions of two vectors in tiles of several shapes, in the Beta 1 dialect.

An older version of the assignment behind ``vector_additions.py``, for Trainium 1. The tiles of ``stream`` follow one
another in memory here.
"""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

ROWS = 128


@nki.jit
def chunks(one, other, height):
    result = nl.ndarray(one.shape, dtype=one.dtype, buffer=nl.hbm)
    for i in nl.affine_range(one.shape[0] // height):
        rows = nl.ds(i * height, height)
        nl.store(result[rows, :], nl.add(nl.load(one[rows, :]), nl.load(other[rows, :])))
    return result


@nki.jit
def stream(one, other, width):
    tiles = one.shape[1] // width
    one, other = (operand.reshape((tiles, ROWS, width)) for operand in (one, other))
    result = nl.ndarray((tiles, ROWS, width), dtype=one.dtype, buffer=nl.hbm)
    for i in nl.affine_range(tiles):
        nl.store(result[i], nl.add(nl.load(one[i]), nl.load(other[i])))
    return result
