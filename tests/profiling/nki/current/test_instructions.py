"""Each instruction of the current dialect computes what NumPy computes."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nki_current_source import BODY, COLUMN, RNG, A, B, run

from accelopt_profiling.nki.current.view_dims import reshape_dims

LEAST = np.float32(np.finfo(np.float32).min)

STATS = np.stack([A.mean(1), A.var(1)], axis=1)


def scan() -> np.ndarray:
    out, state = np.empty_like(A), np.zeros(128, np.float32)
    for i in range(64):
        state = A[:, i] * state + B[:, i]
        out[:, i] = state
    return out


def counted() -> np.ndarray:
    """Positions of positive elements from 3 on, padded with -1, then their number; every 16th row, -9 elsewhere."""
    out = np.full((128, 65), -9.0)
    for row in range(0, 128, 16):
        positions = np.flatnonzero(A[row] > 0)
        out[row] = [*(positions + 3), *[-1] * (64 - len(positions)), len(positions)]
    return out[:, 1:]


def shuffled() -> np.ndarray:
    return np.concatenate([A[q : q + 32][::-1] for q in range(0, 128, 32)])


ROWS, COLUMNS = np.arange(128)[:, None], np.arange(64)[None, :]

#: Statements that fill ``out`` (or make it) from the tiles a, b (128 x 64) and c (128 x 1), and what ``out`` holds.
STATEMENTS: dict[str, np.ndarray] = {
    "nisa.tensor_copy(out, a)": A,
    "nisa.tensor_copy(out, a, engine=nisa.engine.gpsimd)": A,
    "nisa.tensor_tensor(out, a, b, nl.add)": A + B,
    "nisa.tensor_tensor(dst=out, data1=a, data2=b, op=nl.multiply)": A * B,
    "nisa.tensor_scalar(out, a, nl.multiply, 2.0, op1=nl.add, operand1=c)": A * 2 + COLUMN,
    "nisa.tensor_scalar(out, a, nl.subtract, 1.0, True)": 1 - A,
    "nisa.scalar_tensor_tensor(dst=out, data=a, op0=nl.multiply, operand0=c, op1=nl.subtract, operand1=b)":
        A * COLUMN - B,
    "nisa.tensor_scalar(out, a, nl.add, a[:, 3][:128, :1])": A + A[:, 3:4],
    "nisa.tensor_copy(out, a if a else b)": A,
    "nisa.activation(out, nl.exp, a)": np.exp(A),
    "nisa.activation(dst=out, op=nl.exp, data=a, scale=-1.0, bias=c)": np.exp(COLUMN - A),
    "nisa.activation(out, nl.square, a, bias=1.0)": (A + 1) ** 2,
    "out = sbuf(128, 1); nisa.activation(sbuf(128, 64), nl.exp, a, reduce_op=nl.add, reduce_res=out, "
    "reduce_cmd=nisa.reduce_cmd.reset_reduce)": np.exp(A).sum(1, keepdims=True),
    "out = sbuf(128, 1); nisa.activation_reduce(sbuf(128, 64), nl.square, a, nl.add, out)":
        (A * A).sum(1, keepdims=True),
    "out = sbuf(128, 1); nisa.tensor_reduce(out, nl.add, a, axis=1)": A.sum(1, keepdims=True),
    "out = sbuf(128, 1); nisa.tensor_reduce(out, nl.maximum, a, axis=[1], negate=True)": -A.max(1, keepdims=True),
    "out = sbuf(128, 8); nisa.tensor_reduce(out, nl.add, a.reshape((128, 8, 8)), axis=2)": A.reshape(128, 8, 8).sum(2),
    "out = sbuf(1, 64); nisa.tensor_partition_reduce(out, nl.add, a)": A.sum(0, keepdims=True),
    "out = sbuf(128, 1); nisa.reciprocal(out, c)": 1 / COLUMN,
    "nisa.memset(out, 3.0)": np.full_like(A, 3),
    "p = sbuf(128, 64, dtype=nl.uint8); nisa.memset(p, 1); nisa.select_reduce(out, p, a, 0.5)": A,
    "nisa.iota(out, [[1, 64]], 5, channel_multiplier=64)": ROWS * 64 + COLUMNS + 5.0,
    "nisa.affine_select(out, pattern=[[-1, 64]], offset=0, channel_multiplier=1, on_true_tile=a, "
    "on_false_value=-7.0, cmp_op=nl.greater_equal)": np.where(ROWS - COLUMNS >= 0, A, -7),
    "nisa.tensor_tensor_scan(out, a, b, 0.0, nl.multiply, nl.add)": scan(),
    "nisa.nc_stream_shuffle(out, a, [31 - i for i in range(32)])": shuffled(),
    "p = sbuf(128, 64, dtype=nl.uint8); nisa.tensor_scalar(p, a, nl.greater, 0.0); nisa.tensor_copy(out, b); "
    "nisa.tensor_copy_predicated(out, a, p)": np.where(A > 0, A, B),
    "p = sbuf(128, 64, dtype=nl.uint8); nisa.tensor_scalar(p, a, nl.greater, 0.0); nisa.select_reduce(out, p, a, c)":
        np.where(A > 0, A, COLUMN),
    "lo, hi = sbuf(128, 1), sbuf(128, 1); nisa.memset(lo, 3.0); nisa.memset(hi, 9.0); "
    "nisa.range_select(out, a, nl.greater_equal, nl.less, lo, hi)": np.where((COLUMNS >= 3) & (COLUMNS < 9), A, LEAST),
    "out = sbuf(128, 8); nisa.max8(out, a)": -np.sort(-A, axis=1)[:, :8],
    "nisa.tensor_scalar(b, a, nl.greater, 0.0); n = sbuf(128, 65, dtype=nl.int32); nisa.memset(n, -9); "
    "nisa.nonzero_with_count(n, b, 3); nisa.tensor_copy(out, n[:, 1:65])": counted(),
    "m = sbuf(128, 8); nisa.max8(m, a); out = sbuf(128, 8, dtype=nl.uint32); nisa.nc_find_index8(out, a, m)":
        np.argsort(-A, axis=1)[:, :8],
    "m = sbuf(128, 8); nisa.max8(m, a); nisa.nc_match_replace8(out, a, m, -9.0)":
        np.where(-np.sort(-A, axis=1)[:, 7:8] <= A, -9, A),
    "i = sbuf(128, 64, dtype=nl.uint32); nisa.iota(i, [[-1, 64]], 63); nisa.nc_n_gather(out, a, i)": A[:, ::-1],
    "s = sbuf(128, 6); nisa.bn_stats(s, a); out = sbuf(128, 2); nisa.bn_aggr(out, s)": STATS,
    "p = psum(128, 64); nisa.nc_matmul(p, nl.shared_identity_matrix(128, nl.float32), a); nisa.tensor_copy(out, p)": A,
    "p = psum(64, 128); nisa.nc_transpose(p, a); out = sbuf(64, 128); nisa.tensor_copy(out, p)": A.T,
    "out = sbuf(32, 32); nisa.nc_transpose(out, a[0:32, 0:32])": A[:32, :32].T,
    "out = sbuf(64, 128); nisa.dma_transpose(out, a)": A.T,
    "p = psum(64, 64); nisa.nc_matmul(p, a, b); out = sbuf(64, 64); nisa.tensor_copy(out, p)": A.T @ B,
    "p = psum(64, 64); nisa.nc_matmul(p, a, b); nisa.nc_matmul(p, a, b); out = sbuf(64, 64); "
    "nisa.tensor_copy(out, p)": 2 * A.T @ B,
    "p = psum(64, 64); nisa.nc_matmul(p, a, b); nisa.nc_matmul(p, a, b, accumulate=False); out = sbuf(64, 64); "
    "nisa.tensor_copy(out, p)": A.T @ B,
    "nisa.dma_compute(out, [a, b], reduce_op=nl.add)": A + B,
    "out = nl.add(a, b)": A + B,
    "out = nl.softmax(a, axis=1)": np.exp(A) / np.exp(A).sum(1, keepdims=True),
    "out = nl.copy(nl.matmul(a, b, transpose_x=True))": A.T @ B,
    # views
    "out = sbuf(128, 32); nisa.tensor_copy(out, a[:, 0:64:2])": A[:, ::2],
    "out = sbuf(128, 32); nisa.tensor_copy(out, a.ap([[64, 128], [2, 32]], offset=1))": A[:, 1::2],
    "nisa.tensor_copy(out.reshape((128, 4, 16)), a.reshape((128, 16, 4)).permute((0, 2, 1)))":
        A.reshape(128, 16, 4).transpose(0, 2, 1).reshape(128, 64),
    "nisa.tensor_copy(out, c.broadcast(1, 64))": np.broadcast_to(COLUMN, (128, 64)),
    "nisa.tensor_copy(out, a.rearrange(('p', ('h', 'w')), ('p', 'w', 'h'), {'h': 4}))":
        A.reshape(128, 4, 16).transpose(0, 2, 1).reshape(128, 64),
    "one = sbuf(128, 1).ap([[1, 128], [0, 64]]); out = sbuf(128, 1); "
    "nisa.activation_reduce(one, nl.square, a, nl.add, out)":
        (A * A).sum(1, keepdims=True),
    "out = sbuf(128, 8); nisa.tensor_copy(out, a.reshape_dim(1, (8, 8)).select(1, 3))": A[:, 24:32],
    "out = sbuf(64, 16); nisa.tensor_copy(out, a.slice(0, 64, 128).slice(1, 8, 24))": A[64:, 8:24],
}  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_instruction_means_what_numpy_says(statement: str) -> None:
    expected = STATEMENTS[statement]
    outcome = run(BODY.format(statement=statement), A, B, COLUMN)
    assert outcome.fault is None, outcome.fault
    assert outcome.findings == []
    np.testing.assert_allclose(outcome.result, expected, rtol=2e-5, atol=2e-5)
    traced = run(BODY.format(statement=statement), A, B, COLUMN, mode="trace")
    assert traced.fault is None, traced.fault
    assert [(i.opcode, i.line, i.free, i.bytes) for i in traced.trace.instructions] == [
        (i.opcode, i.line, i.free, i.bytes) for i in outcome.trace.instructions
    ]


def test_a_tiled_product_accumulates_in_psum() -> None:
    body = """
    out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    for n in range(2):
        acc = psum(128, 128)
        tiles = []
        for k in range(3):
            x, y = sbuf(64, 128), sbuf(64, 128)
            nisa.dma_copy(x, a[k * 64:(k + 1) * 64, :])
            nisa.dma_copy(y, b[nl.ds(k * 64, 64), nl.ds(n * 128, 128)])
            tiles.append((x, y))
        for x, y in tiles:
            nisa.nc_matmul(acc, x, y)
        done = sbuf(128, 128)
        nisa.tensor_copy(done, acc)
        nisa.dma_copy(out[:, n * 128:(n + 1) * 128], done)
    return out
    """
    a, b = (
        RNG.standard_normal((192, 128), dtype=np.float32),
        RNG.standard_normal((192, 256), dtype=np.float32),
    )
    np.testing.assert_allclose(run(body, a, b).result, a.T @ b, rtol=1e-4, atol=1e-4)


def test_what_a_copy_took_is_not_changed_by_what_happens_to_its_source() -> None:
    body = BODY.format(statement="nisa.tensor_copy(out, a)\nnisa.memset(a, 0.0)")
    np.testing.assert_array_equal(run(body, A, B, COLUMN).result, A)


@given(
    st.permutations([2, 3, 4, 5]),
    st.sampled_from([(120,), (12, 10), (8, 15), (5, 4, 3, 2), (40, 3), (3, 40)]),
)
def test_what_lies_in_one_row_can_be_seen_in_every_shape(shape: list[int], other: tuple[int, ...]) -> None:
    steps = [prod(shape[at + 1 :]) for at in range(len(shape))]
    dims = reshape_dims(list(zip(shape, steps, strict=True)), other)
    assert dims is not None
    assert [(num, step) for num, step in dims] == [(n, prod(other[at + 1 :])) for at, n in enumerate(other)]


def test_a_constant_may_lie_in_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "constant.npy", A)
    statement = f"nisa.dma_copy(out, nl.shared_constant({str(tmp_path / 'constant.npy')!r}))"
    np.testing.assert_array_equal(run(BODY.format(statement=statement), A, B, COLUMN).result, A)
