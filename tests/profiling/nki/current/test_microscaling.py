"""Microscaling types: quantized by AWS's formula of the scale, and multiplied with what they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from support.nki_current_source import TRN2, run

from accelopt_profiling.nki.data.dtypes import dtype_named, packed_values
from accelopt_profiling.nki.data.memory_space import CoreLimits

TRN3 = CoreLimits(sbuf_bytes=256 << 10)
RNG = np.random.default_rng(5)
#: Two magnitudes, and a group of zeros.
X = (RNG.standard_normal((64, 64)) * np.where(np.arange(64) < 32, 1e-3, 50)).astype(dtype_named("bfloat16"))
X[:8, :4] = 0
Y = RNG.standard_normal((64, 256)).astype(dtype_named("bfloat16"))

PRODUCT = """
tiles = []
for x, n in ((a, 16), (b, 64)):
    tile = nl.ndarray((64, 4 * n), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(tile, x)
    data = nl.ndarray((64, n), dtype=nl.{kind}, buffer=nl.sbuf)
    scale = nl.ndarray((64, n), dtype=nl.{scale}, buffer=nl.sbuf)
    nisa.quantize_mx(data, tile, scale)
    tiles += [data, scale]
product = psum(16, 64)
nisa.nc_matmul_mx(product, tiles[0], tiles[2], tiles[1], tiles[3])
out = nl.ndarray((16, 64), dtype=nl.float32, buffer=nl.shared_hbm)
copied = sbuf(16, 64)
nisa.tensor_copy(copied, product)
nisa.dma_copy(out, copied)
return out
"""


def rounded(x: np.ndarray, kind: str, most: int) -> np.ndarray:
    """What quantized values stand for, by the formula: ``[partitions, columns, 4]``."""
    groups = x.astype(np.float64).reshape(8, 8, -1, 4)
    largest = np.abs(groups).max(axis=(1, 3), keepdims=True)
    scale = 2.0 ** (np.floor(np.log2(np.where(largest > 0, largest, 1))) - (most - 1))
    values = (groups / scale).astype(dtype_named(kind)).astype(np.float64) * scale
    return values.reshape(64, -1, 4)


@pytest.mark.parametrize("scale", ["uint8", "float8_e8m0fnu"])
@pytest.mark.parametrize(("kind", "most"), [("float8_e4m3fn", 8), ("float8_e5m2", 15)])
def test_a_product_of_quantized_tiles(kind: str, most: int, scale: str) -> None:
    outcome = run(PRODUCT.format(kind=f"{kind}_x4", scale=scale), X, Y, limits=TRN3)
    assert outcome.fault is None
    assert outcome.findings == []
    expected = np.einsum("kmq,knq->mn", rounded(X, kind, most), rounded(Y, kind, most))
    assert np.allclose(outcome.result, expected, rtol=1e-5, atol=1e-5)


def test_older_cores_have_no_such_instruction() -> None:
    outcome = run(PRODUCT.format(kind="float8_e5m2_x4", scale="uint8"), X, Y, limits=TRN2)
    assert outcome.fault is not None
    assert "trn3" in outcome.fault.message


def test_the_four_values_of_an_element() -> None:
    """The first value of a float4 element lies in the lower half of its first byte."""
    four = np.array([0x21, 0xF0], np.uint8).view(dtype_named("float4_e2m1fn_x4"))
    assert packed_values(four).tolist() == [[0.5, 1.0, 0.0, -6.0]]
