"""Copies that only move values are left out, and what read them reads the original; where that would change what is
read, they stay."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.nki_source import run

from accelopt_profiling.nki.compute import deferred
from accelopt_profiling.nki.compute.copy_elision import _parts, _through, elide_copies
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.dtypes import as_dtype

A = np.random.default_rng(5).standard_normal((64, 96), dtype=np.float32)

HEAD = "out = nl.ndarray((64, 96), dtype=np.float32, buffer=nl.shared_hbm)\n"

#: A body that returns ``out``, what ``out`` holds, and the functions that are left to compute: name and number.
BODIES: list[tuple[str, np.ndarray, dict[str, int]]] = [
    ("nl.store(out, nl.load(a))", A, {"copy_values": 1}),
    ("x = nl.load(a)\ny = nl.copy(x)\nnl.store(out, nl.exp(nl.copy(y)))", np.exp(A), {"exp": 1, "copy_values": 1}),
    # of a copy in parts, each reader finds its part
    (
        "x = nl.ndarray((nl.par_dim(64), 3, 32), dtype=np.float32, buffer=nl.sbuf)\n"
        "for i in range(3):\n    x[:, i, :] = nl.load(a[:, 32 * i:32 * i + 32])\n"
        "for i in range(3):\n    nl.store(out[:, 32 * i:32 * i + 32], nl.copy(x[:, 2 - i, :]))",
        np.concatenate([A[:, 64:], A[:, 32:64], A[:, :32]], axis=1),
        {"copy_values": 3},
    ),
    # a reader of two parts needs the copies
    (
        "x = nl.ndarray((nl.par_dim(64), 96), dtype=np.float32, buffer=nl.sbuf)\n"
        "for i in range(2):\n    x[:, 48 * i:48 * i + 48] = nl.load(a[:, 48 - 48 * i:96 - 48 * i])\n"
        "nl.store(out, x)",
        np.concatenate([A[:, 48:], A[:, :48]], axis=1),
        {"copy_values": 3},
    ),
    # the original is written in between
    (
        "x = nl.ndarray((nl.par_dim(64), 96), dtype=np.float32, buffer=nl.sbuf)\nx[...] = nl.load(a)\n"
        "x[...] = nl.exp(x)\ny = nl.copy(x)\nx[...] = nl.multiply(x, 0.0)\nnl.store(out, y)",
        np.exp(A),
        {"exp": 1, "multiply": 1, "copy_values": 3},
    ),
    # the copy is written in between
    (
        "x = nl.ndarray((nl.par_dim(64), 96), dtype=np.float32, buffer=nl.sbuf)\nx[...] = nl.load(a)\n"
        "x[:, 0:32] = nl.exp(x[:, 0:32])\nnl.store(out, x)",
        np.concatenate([np.exp(A[:, :32]), A[:, 32:]], axis=1),
        {"exp": 1, "copy_values": 2},
    ),
    # a tile that is read often stays in one piece
    (
        "x = nl.load(a[:, 0:32])\nfor i in range(3):\n    nl.store(out[:, 32 * i:32 * i + 32], nl.copy(x))",
        np.tile(A[:, :32], (1, 3)),
        {"copy_values": 4},
    ),
    # a product takes its operand transposed twice
    (
        "x = nl.load(a[:, 0:64])\nt = nl.copy(nl.transpose(x))\n"
        "nl.store(out[:, 0:32], nl.copy(nisa.nc_matmul(t, nl.load(a[:, 64:96]))))\nnl.store(out[:, 32:96], x)",
        np.concatenate([A[:, :64] @ A[:, 64:], A[:, :64]], axis=1),
        {"multiply_values": 1, "copy_values": 2},
    ),
    # another type is another value
    (
        "x = nl.load(a, dtype=nl.bfloat16)\nnl.store(out, nl.copy(x, dtype=np.float32))",
        A.astype(as_dtype("bfloat16")).astype(np.float32),
        {"copy_values": 3},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected", "remaining"), BODIES)
def test_what_is_left_to_do(body: str, expected: np.ndarray, remaining: dict[str, int]) -> None:
    done: list[ComputeStep] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deferred, "elide_copies", lambda steps: done.extend(elide_copies(steps)) or done)
        outcome = run(HEAD + body + "\nreturn out", A)
    np.testing.assert_allclose(outcome.result, expected, rtol=1e-5, atol=1e-5)
    names = Counter(getattr(step.op, "__name__", "") for step in done)
    assert {name: names[name] for name in remaining} == remaining
    assert sum(remaining.values()) == len(done), names


def test_a_read_of_unwritten_memory_keeps_every_step() -> None:
    body = (
        "x = nl.ndarray((nl.par_dim(64), 96), dtype=np.float32, buffer=nl.sbuf)\n"
        "x[:, 0:32] = nl.load(a[:, 0:32])\nnl.store(out, nl.copy(x))"
    )
    outcome = run(HEAD + body + "\nreturn out", A)
    assert [f.code for f in outcome.findings] == ["uninitialised-read"]
    np.testing.assert_array_equal(outcome.result[:, :32], A[:, :32])
    assert np.isnan(outcome.result[:, 32:]).all()


sizes = st.lists(st.integers(1, 4), min_size=3, max_size=3)


@settings(deadline=None)
@given(sizes, st.permutations(range(3)), st.data())
def test_a_view_of_a_copy_is_the_same_view_of_the_original(
    shape: list[int], order: list[int], data: st.DataObject
) -> None:
    """Any box of a copy, with steps, in any order of dimensions: the same numbers, read from the original."""
    values = np.arange(1, np.prod(shape) * 2 + 1, dtype=np.float32).reshape(*shape[:2], shape[2] * 2)
    source = values[:, :, ::2].transpose(order)
    copy = np.ascontiguousarray(source)

    def dims(array: np.ndarray) -> tuple[tuple[int, int], ...]:
        return tuple((n, s // 4) for n, s in zip(array.shape, array.strides, strict=True))

    parts = _parts(dims(copy), dims(source), False)
    assert parts is not None
    keys = []
    for n in copy.shape:
        low = data.draw(st.integers(0, n - 1))
        keys.append(slice(low, data.draw(st.integers(low + 1, n)), data.draw(st.integers(1, 2))))
    view = copy[tuple(keys)].transpose(data.draw(st.permutations(range(3))))
    start = (view.__array_interface__["data"][0] - copy.__array_interface__["data"][0]) // 4
    origin = _through(start, dims(view), parts)
    assert origin is not None
    flat = values.reshape(-1)
    read = np.lib.stride_tricks.as_strided(
        flat[origin[0] :], [n for n, _ in origin[1]], [4 * step for _, step in origin[1]]
    )
    np.testing.assert_array_equal(read, view)
