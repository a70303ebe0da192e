"""Instructions and keywords that came after the first public version of the dialect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.nki_current_source import BODY, COLUMN, RNG, A, B, run

from accelopt_profiling.nki.data.memory_space import CoreLimits

TRN3 = CoreLimits(sbuf_bytes=256 << 10)
SCANNED = np.cumsum(A * np.float32(2), axis=1, dtype=np.float32)


def after(statement: str, **options: Any) -> Any:
    ran = run(BODY.format(statement=statement), A, B, COLUMN, **options)
    assert ran.fault is None
    return ran.result


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("nisa.activate2(out, nl.relu, a, 2.0, 1.0, nl.multiply, nl.add)", np.maximum(A * 2 + 1, 0)),
        ("nisa.activate2(out, nl.relu, a, 2.0, c, nl.multiply, nl.subtract, reverse1=True)",
         np.maximum(COLUMN - A * 2, 0)),
        ("nisa.activate2(out, nl.prelu, a, 0.0, 0.0, nl.bypass, nl.bypass, 0.25)", np.where(A > 0, A, A / 4)),
        ("nisa.activate2(b, nl.square, a, 0.0, 0.0, nl.bypass, nl.bypass, reduce_op=nl.add, reduce_res=c, "
         "reduce_cmd=nisa.reduce_cmd.reset_reduce)\nout = c", np.sum(A * A, axis=1, keepdims=True)),
        ("nisa.tensor_tensor(out, a, b, nl.abs_max)", np.where(np.abs(A) > np.abs(B), A, B)),
        ("nisa.tensor_tensor(out, a, b, nl.abs_min)", np.where(np.abs(A) < np.abs(B), A, B)),
    ],
)  # fmt: skip
def test_what_trn3_alone_has(statement: str, expected: Any) -> None:
    np.testing.assert_allclose(after(statement, limits=TRN3), expected, rtol=1e-5, atol=1e-6)


def test_a_load_swaps_two_dimensions() -> None:
    np.testing.assert_array_equal(after("out = nl.load_transpose2d(a_hbm)"), A.T)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("nisa.tensor_scalar_cumulative(out, a, nl.multiply, nl.add, 2.0)", SCANNED),
        ("nisa.tensor_scalar_cumulative(dst=out, src=a, op0=nl.multiply, op1=nl.add, imm0=2.0, imm1=c, "
         "reduce_cmd=nisa.reduce_cmd.load_reduce)", SCANNED + COLUMN),
        ("nisa.tensor_scalar_cumulative(out[:, :32], a[:, :32], nl.multiply, nl.add, 2.0)\n"
         "nisa.tensor_scalar_cumulative(out[:, 32:], a[:, 32:], nl.multiply, nl.add, 2.0, "
         "reduce_cmd=nisa.reduce_cmd.reduce)", SCANNED),
        ("nisa.tensor_scalar_cumulative(out, a, nl.add, nl.maximum, 1.0)", np.maximum.accumulate(A + 1, axis=1)),
        ("nisa.tensor_scalar_reduce(b, a, nl.add, 0.0, nl.add, c, reduce_res_negate=True)\nout = c",
         -np.sum(A, axis=1, keepdims=True)),
        ("nisa.affine_select(out, [[-1, 64]], 1, a, -1.0, nl.greater_equal, 3)",
         np.where(np.arange(128)[:, None] - np.arange(64) + 3 >= 0, A, -1)),
    ],
)  # fmt: skip
def test_results(statement: str, expected: Any) -> None:
    np.testing.assert_allclose(after(statement), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", ["erf", "gelu", "gelu_apprx_sigmoid"])
def test_a_derivative_is_the_slope_of_its_function(function: str) -> None:
    high, low = (after(f"nisa.activation(out, nl.{function}, a, scale=1.0, bias={b})") for b in (0.01, -0.01))
    slope = after(f"nisa.activation(out, nl.{function}_dx, a)")
    np.testing.assert_allclose(slope, (high - low) / 0.02, atol=2e-3)


def test_local_gather_reads_a_groups_indices_down_its_partitions() -> None:
    places = RNG.integers(0, 62, (32, 2)).astype(np.uint16)
    body = """
    x, at, out = sbuf(32, 64), sbuf(32, 2, dtype=nl.uint16), sbuf(32, 20, 2)
    nisa.dma_copy(x, a)
    nisa.dma_copy(at, b)
    nisa.local_gather(out, x, at, num_elem_per_idx=2, num_valid_indices=20)
    result = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(result, out)
    return result
    """
    result = run(body, A[:32].copy(), places).result
    for p in (0, 17, 31):
        group = places[p // 16 * 16 : p // 16 * 16 + 16]
        for n in range(20):
            start = int(group[n % 16, n // 16])
            np.testing.assert_array_equal(result[p, n], A[p, start : start + 2])


def test_sequence_bounds_tell_where_a_segment_begins_and_ends() -> None:
    body = """
    ids, out = sbuf(1, 6), sbuf(1, 2, 6)
    nisa.dma_copy(ids, a)
    nisa.sequence_bounds(dst=out, segment_ids=ids)
    result = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(result, out)
    return result
    """
    result = run(body, np.array([[1, 1, 2, 3, 3, 0]], np.float32)).result
    np.testing.assert_array_equal(result[0], [[0, 0, 2, 3, 3, 6], [2, 2, 3, 5, 5, -1]])


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("nisa.activate2(out, nl.relu, a, 2.0, 1.0, nl.multiply, nl.add)", "activate2 needs trn3"),
        ("nisa.tensor_scalar_cumulative(out, a, nl.add, nl.power, 1.0)", "do not reduce with 'power'"),
        ("nisa.local_gather(out, a, sbuf(128, 4), 3)", "num_elem_per_idx is 1, 2, 4"),
        ("nisa.local_gather(out, a, sbuf(128, 4))", "takes uint16 indices, not float32"),
        ("nisa.local_gather(out, a, sbuf(128, 2, dtype=nl.uint16))", "32 of 32 indices"),
        ("nisa.sequence_bounds(out, a)", "works on one partition"),
    ],
)
def test_misuse_is_told(statement: str, words: str) -> None:
    fault = run(BODY.format(statement=statement), A, B, COLUMN).fault
    assert fault is not None
    assert words in fault.message
