"""The emulated dialect computes what NumPy computes, and says which rule a kernel breaks, on its line."""

from __future__ import annotations

import math
from typing import Literal

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.nki_source import FIRST_LINE, run

RNG = np.random.default_rng(7)
A = RNG.standard_normal((128, 64), dtype=np.float32)
B = RNG.standard_normal((128, 64), dtype=np.float32)
COLUMN = RNG.uniform(0.5, 2.0, (128, 1)).astype(np.float32)
ROW = RNG.standard_normal((1, 64), dtype=np.float32)

ERF = np.vectorize(math.erf)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


#: An expression on the tiles a, b (128 x 64), c (128 x 1) and d (1 x 64), and what it means.
EXPRESSIONS = {
    "nl.add(a, b)": A + B,
    "nl.subtract(a, 2.0)": A - 2,
    "nl.subtract(2.0, a)": 2 - A,
    "nl.multiply(a, c)": A * COLUMN,
    "nl.multiply(a, d)": A * ROW,
    "nl.divide(a, c)": A / COLUMN,
    "nl.divide(1.0, c)": 1 / COLUMN,
    "nl.maximum(a, b)": np.maximum(A, B),
    "nl.minimum(a, 0.0)": np.minimum(A, 0),
    "nl.greater(a, b)": (A > B).astype(np.float32),
    "a + b * 2.0 - c": A + B * 2 - COLUMN,
    "-a / c": -A / COLUMN,
    "nl.exp(a)": np.exp(A),
    "nl.sigmoid(a)": sigmoid(A),
    "nl.silu(a)": A * sigmoid(A),
    "nl.gelu(a)": 0.5 * A * (1 + ERF(A / math.sqrt(2))),
    "nl.tanh(a)": np.tanh(A),
    "nl.relu(a)": np.maximum(A, 0),
    "nl.square(a)": A * A,
    "nl.sqrt(c)": np.sqrt(COLUMN),
    "nl.rsqrt(c)": 1 / np.sqrt(COLUMN),
    "nl.log(c)": np.log(COLUMN),
    "nl.reciprocal(c)": 1 / COLUMN,
    "nl.sum(a, axis=1, keepdims=True)": A.sum(1, keepdims=True),
    "nl.max(a, axis=[1])": A.max(1, keepdims=True),
    "nl.mean(a, axis=1)": A.mean(1, keepdims=True),
    "nl.softmax(a, axis=1)": np.exp(A) / np.exp(A).sum(1, keepdims=True),
    "nl.rms_norm(a, b, axis=1, n=64, epsilon=0.01)": A / np.sqrt((A * A).mean(1, keepdims=True) + 0.01) * B,
    "nl.where(nl.greater(a, 0.0), a, b)": np.where(A > 0, A, B),
    "nl.broadcast_to(d, shape=(128, 64))": np.broadcast_to(ROW, (128, 64)),
    "d.broadcast_to((128, 64))": np.broadcast_to(ROW, (128, 64)),
    "nl.copy(nl.transpose(nl.copy(a[0:32, 0:16])))": A[:32, :16].T,
    "nl.copy(nl.matmul(a[:, 0:32], b[0:32, :]))": A[:, :32] @ B[:32],
    "nl.copy(nl.matmul(a, b, transpose_x=True))": A.T @ B,
    "nl.copy(nisa.nc_matmul(a, b))": A.T @ B,
    "nisa.activation(op=nl.exp, data=a, scale=-1.0)": np.exp(-A),
    "nisa.activation(op=nl.tanh, data=a, scale=c, bias=c)": np.tanh(A * COLUMN + COLUMN),
    "nisa.activation(op=np.square, data=a)": A * A,
    "nisa.tensor_scalar(a, nl.multiply, 3.0, op1=nl.add, operand1=c)": A * 3 + COLUMN,
    "nisa.tensor_scalar(a, np.subtract, 1.0, reverse0=True)": 1 - A,
    "nisa.tensor_scalar(data=a, op0=nl.add, operand0=1.0, op1=nl.divide, operand1=1.0, reverse1=True)": 1 / (A + 1),
    "nisa.tensor_tensor(a, b, op=nl.multiply)": A * B,
    "nisa.scalar_tensor_tensor(data=a, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=b)": A * 2 + B,
    "nisa.tensor_reduce(nl.add, data=a, axis=[1])": A.sum(1, keepdims=True),
    "nisa.tensor_reduce(nl.max, data=a, axis=1, negate=True)": -A.max(1, keepdims=True),
    "nisa.reciprocal(c)": 1 / COLUMN,
    "nisa.tensor_copy(a, engine=nisa.vector_engine)": A,
    "nisa.bn_aggr(nisa.bn_stats(a))": np.stack([A.mean(1), A.var(1)], axis=1),
    "nisa.memset((128, 4), 2.5, np.float32)": np.full((128, 4), 2.5),
    "nisa.iota(nl.arange(128)[:, None] * 64 + nl.arange(64)[None, :], np.float32)": np.arange(8192).reshape(128, 64),
    "nisa.affine_select(nl.arange(128)[:, None] >= nl.arange(64)[None, :], a, -1.0)":
        np.where(np.arange(128)[:, None] >= np.arange(64)[None, :], A, -1),
}  # fmt: skip

MASKED_NORM = """
rows = nl.arange(128)[:, None]
out = nl.zeros((128, 64), dtype=np.float32, buffer=nl.shared_hbm)
x = nl.load(a[rows, nl.arange(64)[None, :]], mask=rows < 100)
y = nl.rms_norm(x, nl.load(d), 1, 64, 0.0, mask=rows < 100)
nl.store(out[rows, nl.arange(64)[None, :]], y, mask=rows < 100)
return out
"""


def test_a_masked_norm_reads_and_writes_nothing_else() -> None:
    outcome = run(MASKED_NORM, A, B, COLUMN, ROW)
    assert (outcome.fault, outcome.findings) == (None, [])
    expected = A[:100] / np.sqrt((A[:100] ** 2).mean(1, keepdims=True)) * ROW
    np.testing.assert_allclose(outcome.result[:100], expected, rtol=1e-5, atol=1e-6)


BODY = """
a, b, c, d = nl.load(a), nl.load(b), nl.load(c), nl.load(d)
result = {expression}
out = nl.ndarray(result.shape, dtype=np.float32, buffer=nl.shared_hbm)
nl.store(out, result)
return out
"""


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_means_what_numpy_says(expression: str) -> None:
    outcome = run(BODY.format(expression=expression), A, B, COLUMN, ROW)
    assert outcome.fault is None, outcome.fault
    assert outcome.findings == []
    assert type(outcome.result) is np.ndarray
    # the sum of 128 products differs from one NumPy to the next by the order in which they are added
    atol = 128 * np.finfo(np.float32).eps if "matmul" in expression else 2e-6
    np.testing.assert_allclose(outcome.result, EXPRESSIONS[expression], rtol=2e-5, atol=atol)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_trace_alone_has_the_same_instructions(expression: str) -> None:
    body = BODY.format(expression=expression)
    full, trace = run(body, A, B, COLUMN, ROW), run(body, A, B, COLUMN, ROW, mode="trace")

    def shape(outcome: object) -> list[tuple[object, ...]]:
        return [
            (i.opcode, i.engines, i.line, i.partitions, i.free, i.bytes) for i in outcome.trace.instructions
        ]  # type: ignore[attr-defined]

    assert shape(full) == shape(trace)
    assert trace.result.shape == full.result.shape


def test_psum_accumulates_products() -> None:
    body = """
    out = nl.ndarray((64, 64), dtype=np.float32, buffer=nl.shared_hbm)
    acc = nl.zeros((nl.par_dim(64), 64), dtype=np.float32, buffer=nl.psum)
    for k in nl.affine_range(4):
        x = nl.load(a[32 * k:32 * k + 32, :])
        y = nl.load(b[nl.ds(32 * k, 32), :])
        acc[...] += nisa.nc_matmul(x, y)
    nl.store(out, nl.copy(acc))
    return out
    """
    outcome = run(body, A, B)
    np.testing.assert_allclose(outcome.result, A.T @ B, rtol=1e-4, atol=1e-4)
    engines = [i.engines[0] for i in outcome.trace.instructions]
    assert engines.count("VectorE") == 0, "adding up in PSUM is free"


def test_a_sum_under_a_plain_name_is_still_copied_where_it_is_assigned_next() -> None:
    """``acc += x`` has no assignment of its own, so that the next one of ``acc`` is one."""
    body = """
    out = nl.ndarray((64, 2, 64), dtype=np.float32, buffer=nl.shared_hbm)
    rows = nl.ndarray((nl.par_dim(64), 2, 64), dtype=np.float32, buffer=nl.sbuf)
    x, y = nl.load(a), nl.load(b)
    for k in nl.affine_range(2):
        acc = nl.zeros((nl.par_dim(64), 64), dtype=np.float32, buffer=nl.psum)
        for part in nl.affine_range(2):
            acc += nisa.nc_matmul(x, y)
        rows[:, k, :] = acc
    nl.store(out, rows)
    return out
    """
    outcome = run(body, A, B)
    assert (outcome.fault, outcome.findings) == (None, [])
    np.testing.assert_allclose(outcome.result[:, 1], 2 * A.T @ B, rtol=1e-4, atol=1e-4)
    assert [i.opcode for i in outcome.trace.instructions].count("tensor_copy") == 2


@pytest.mark.parametrize("instruction", ["tensor_tensor(x, y[:, 0], nl.add)", "tensor_scalar(x, nl.add, y[:, 0])",
                                         "activation(op=np.copy, data=x, bias=y[:, 0])"])  # fmt: skip
def test_one_value_per_partition_serves_all_dimensions(instruction: str) -> None:
    body = f"""
    out = nl.ndarray((128, 4, 16), dtype=np.float32, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    nl.store(out, nisa.{instruction})
    return out
    """
    array = A.reshape(128, 4, 16)
    outcome = run(body, array, COLUMN)
    assert outcome.fault is None, outcome.fault
    np.testing.assert_allclose(outcome.result, array + COLUMN[:, :, None], rtol=1e-6)
    assert run(body, array, COLUMN, mode="trace").fault is None


@pytest.mark.parametrize("mode", ["trace", "full"])
def test_a_copy_of_more_than_there_is_place_for_is_refused(mode: Literal["trace", "full"]) -> None:
    body = """
    column = nl.ndarray((128, 1), dtype=np.float32, buffer=nl.sbuf)
    nisa.dma_copy(src=a, dst=column)
    return column
    """
    fault = run(body, A, mode=mode).fault
    assert fault is not None
    assert "shape (128, 64) is written to a place of shape (128, 1)" in fault.message


def test_a_scan_and_a_reduction_over_loops() -> None:
    body = """
    out = nl.ndarray((128, 64), dtype=np.float32, buffer=nl.shared_hbm)
    peak = nl.ndarray((128, 1), dtype=np.float32, buffer=nl.shared_hbm)
    top = nl.ndarray((nl.par_dim(128), 1), dtype=np.float32)
    x, y = nl.load(a), nl.load(b)
    nl.store(out, nisa.tensor_tensor_scan(x, y, initial=0, op0=np.multiply, op1=np.add))
    for i in nl.affine_range(4):
        part = nisa.tensor_reduce(nl.max, data=x[:, 16 * i:16 * i + 16], axis=[1])
        top[...] = nl.loop_reduce(part, op=np.max, loop_indices=[i])
    nl.store(peak, top)
    return out, peak
    """
    scanned, peak = run(body, A, B).result
    state, expected = np.zeros(128, np.float32), np.empty_like(A)
    for i in range(64):
        state = A[:, i] * state + B[:, i]
        expected[:, i] = state
    np.testing.assert_allclose(scanned, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(peak, A.max(1, keepdims=True))


def test_activation_reduce_fills_the_column_it_is_given() -> None:
    body = """
    out = nl.ndarray((128, 1), dtype=np.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((nl.par_dim(128), 1), dtype=np.float32, buffer=nl.sbuf)
    x = nl.load(a)
    nisa.activation_reduce(op=nl.square, data=x, reduce_op=nl.add, reduce_res=total[...])
    nl.store(out, total)
    return out
    """
    np.testing.assert_allclose(run(body, A).result, (A * A).sum(1, keepdims=True), rtol=1e-5)


def test_the_indices_of_a_grid_have_names_and_a_range_is_an_index() -> None:
    body = """
    out = nl.ndarray((128, 4, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    grid = nl.mgrid[0:128, 0:4, 0:8]
    every = range(128)
    nl.store(out[grid.p, grid.x, grid.y], nl.load(a[every, 0:32])[grid.p, 8 * grid.x + grid.y])
    return out
    """
    array = RNG.standard_normal((128, 32), dtype=np.float32)
    np.testing.assert_array_equal(run(body, array).result, array.reshape(128, 4, 8))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 300), st.integers(1, 200))
def test_masks_cut_off_what_does_not_divide(rows: int, columns: int) -> None:
    array = RNG.standard_normal((rows, columns), dtype=np.float32)
    body = """
    m, n = a.shape
    out = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.shared_hbm)
    r, c = nl.mgrid[0:128, 0:64]
    for i in nl.affine_range((m + 127) // 128):
        for j in nl.affine_range((n + 63) // 64):
            inside = (i * 128 + r < m) & (j * 64 + c < n)
            tile = nl.load(a[i * 128 + r, j * 64 + c], mask=inside)
            twice = nl.multiply(tile, 2.0, mask=inside)
            nl.store(out[i * 128 + r, j * 64 + c], twice, mask=inside)
    return out
    """
    outcome = run(body, array)
    assert outcome.fault is None, outcome.fault
    assert outcome.findings == []
    np.testing.assert_array_equal(outcome.result, array * 2)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3"])
def test_narrow_types_round_when_stored(name: str) -> None:
    narrow = np.dtype(getattr(ml_dtypes, name))
    body = f"""
    out = nl.ndarray(a.shape, dtype=nl.{name}, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.load(a, dtype=nl.{name}), 1.0))
    return out
    """
    expected = (A.astype(narrow).astype(np.float32) + 1).astype(narrow)
    got = run(body, A).result
    assert got.dtype == narrow
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))


def test_programs_of_a_grid_share_the_output() -> None:
    from accelopt_profiling.nki.install import emulated

    with emulated():
        import neuronxcc.nki as nki
        import neuronxcc.nki.language as nl

        @nki.jit
        def kernel(a):  # type: ignore[no-untyped-def]
            out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
            i = nl.program_id(0)
            nl.store(out[i * 32 : i * 32 + 32, :], nl.load(a[i * 32 : i * 32 + 32, :]))
            return out

        np.testing.assert_array_equal(kernel[4](A), A)


#: A body, the line (from the body's first) that is wrong, the code, and words of the message.
VIOLATIONS = [
    ("x = nl.load(a)\ny = nl.frobnicate(x)", 2, "unsupported", "neuronxcc.nki.language.frobnicate is not emulated"),
    ("x = nl.load(a)\ny = nisa.tensor_tensr(x, x, op=nl.add)", 2, "unsupported", "nearest there is: .*tensor_tensor"),
    ("x = nl.ndarray((nl.par_dim(256), 4), dtype=np.float32)", 1, "capacity", "256; SBUF has 128 partitions"),
    ("x = nl.ndarray((nl.par_dim(128), 100000), dtype=np.float32)", 1, "capacity", "400,000 B per partition"),
    ("x = nl.zeros((nl.par_dim(128), 8192), dtype=np.float32, buffer=nl.psum)", 1, "capacity", "PSUM has 16,384 B"),
    ("x = nl.load(a[0:128, 0:200])", 1, "out-of-bounds", "0:200 leaves dimension 1 of size 64"),
    ("i = nl.arange(128)[:, None]\nx = nl.load(a[i + 1, 0])", 2, "out-of-bounds", "covers 1 to 128"),
    ("x = nl.load(a[200])", 1, "out-of-bounds", "Index 200"),
    ("x = nl.load(a)\ny = nisa.nc_matmul(x[:, 0:32], x[0:64, :])", 2, "out-of-bounds", "stationary has 128"),
    ("x = nl.add(a, 1.0)", 1, "unsupported", "cannot read HBM"),
    ("x = nl.load(a)\na[0:128, 0:64] = x", 2, "unsupported", "input cannot be written"),
    ("x = nl.load(a)\ny = nisa.tensor_tensor(x, x[:, 0:32], op=nl.add)", 2, "out-of-bounds", "do not fit"),
    ("x = nl.load(a)\ny = nisa.activation(op=nl.add, data=x)", 2, "unsupported", "ScalarE has no function 'add'"),
    ("x = nl.load(a)\ny = nl.sum(x, axis=0)", 2, "unsupported", "over partitions"),
    ("x = nl.load(a)\ny = nisa.tensor_copy(x, engine=nisa.tensor_engine)", 2, "unsupported", "cannot run on TensorE"),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["full", "trace"])
@pytest.mark.parametrize(("body", "line", "code", "words"), VIOLATIONS)
def test_a_broken_rule_is_told_on_its_line(body: str, line: int, code: str, words: str, mode: str) -> None:
    import re

    outcome = run(body + "\nreturn a", A, mode=mode)  # type: ignore[arg-type]
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.line) == (code, FIRST_LINE + line - 1)
    assert re.search(words, outcome.fault.message), outcome.fault.message


UNWRITTEN = """
out = nl.ndarray((128, 64), dtype=np.float32, buffer=nl.shared_hbm)
tile = nl.ndarray((nl.par_dim(128), 64), dtype=np.float32, name="half")
tile[:, 0:32] = nl.load(a[:, 0:32])
nl.store(out, {value})
return out
"""


@pytest.mark.parametrize("mode", ["full", "trace"])
def test_reading_what_was_never_written_is_told_and_poisons_the_result(mode: str) -> None:
    outcome = run(UNWRITTEN.format(value="nl.add(tile, 1.0)"), A, mode=mode)  # type: ignore[arg-type]
    assert [(f.code, f.line) for f in outcome.findings] == [("uninitialised-read", FIRST_LINE + 3)]
    assert "half" in outcome.findings[0].message
    if mode == "full":
        assert np.isnan(outcome.result[:, 32:]).all()
        np.testing.assert_array_equal(outcome.result[:, :32], A[:, :32] + 1)


def test_an_output_that_is_not_written_everywhere_is_told() -> None:
    body = """
    out = nl.ndarray((128, 64), dtype=np.float32, buffer=nl.shared_hbm)
    nl.store(out[:, 0:32], nl.load(a[:, 0:32]))
    return out
    """
    outcome = run(body, A)
    assert [(f.code, f.line) for f in outcome.findings] == [("uninitialised-read", FIRST_LINE)]
    assert np.isnan(outcome.result[:, 32:]).all()


def test_a_predicated_copy_changes_what_the_predicate_names() -> None:
    body = """
    out = nl.ndarray((128, 64), dtype=np.float32, buffer=nl.shared_hbm)
    tile, other = nl.load(b), nl.load(a)
    nisa.tensor_copy_predicated(src=other, dst=tile, predicate=nl.greater(other, 0.0))
    nl.store(out, tile)
    return out
    """
    np.testing.assert_array_equal(run(body, A, B).result, np.where(A > 0, A, B))


def test_inputs_are_left_alone() -> None:
    body = """
    out = nl.ndarray((128, 64), dtype=np.float32, buffer=nl.shared_hbm)
    tile = nl.load(a)
    tile[...] = nl.multiply(tile, 0.0)
    nl.store(out, tile)
    return out
    """
    before = A.copy()
    assert not run(body, A).result.any()
    np.testing.assert_array_equal(A, before)


def test_a_type_may_be_an_argument() -> None:
    body = """
    out = nl.ndarray(a.shape, dtype=b, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a, dtype=b))
    return out
    """
    outcome = run(body, A, np.float16)
    assert outcome.fault is None
    assert outcome.result.dtype == np.float16


def test_rows_that_a_tile_names_are_gathered_and_transposed() -> None:
    """The index of the partitions comes first, whatever the number of the other indices' dimensions."""
    source, rows = (
        np.arange(8 * 4 * 16, dtype=np.float32).reshape(8, 4, 16),
        np.array([[5], [0], [3]], np.uint32),
    )
    body = """
    rows, iy, iz = nl.load(b), nl.arange(4)[None, :, None], nl.arange(16)[None, None, :]
    turned = nisa.dma_transpose(a[rows[nl.arange(3)[:, None], 0], iy, iz], axes=(2, 1, 0))
    out = nl.ndarray((16, 4, 3), dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, turned)
    return out
    """
    outcome = run(body, source, rows)
    assert outcome.fault is None
    np.testing.assert_array_equal(outcome.result, source[rows[:, 0]].transpose(2, 1, 0))
