"""Index expressions, views and masks agree with NumPy on the same expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nki_source import run

from accelopt_profiling.nki.data.coverage import WriteCoverage
from accelopt_profiling.nki.data.index import Affine, Mask, arange
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.emulator.selection import select

small = st.integers(1, 6)
numbers = st.integers(-7, 7)


@given(small, small, numbers, numbers, numbers)
def test_affine_arithmetic_is_numpys(n: int, m: int, factor: int, other: int, offset: int) -> None:
    rows, columns = arange(0, n)[:, None], arange(0, m)[None, :]
    expected_rows, expected_columns = np.arange(n)[:, None], np.arange(m)[None, :]
    got = factor * rows + offset - columns * other
    assert isinstance(got, Affine)
    expected = factor * expected_rows + offset - expected_columns * other
    np.testing.assert_array_equal(got.array(), expected)
    assert (got.low, got.high) == (expected.min(), expected.max())


@given(small, numbers, st.integers(1, 5))
def test_what_is_not_affine_becomes_positions(n: int, offset: int, by: int) -> None:
    index = arange(0, n) + offset
    np.testing.assert_array_equal(index // by, (np.arange(n) + offset) // by)
    np.testing.assert_array_equal(index % by, (np.arange(n) + offset) % by)
    np.testing.assert_array_equal(index * index, (np.arange(n) + offset) ** 2)


@given(small, small, numbers, numbers, numbers, numbers)
def test_masks_are_numpys_comparisons(n: int, m: int, a: int, b: int, bound: int, other: int) -> None:
    rows, columns = arange(0, n)[:, None], arange(0, m)[None, :]
    r, c = np.arange(n)[:, None], np.arange(m)[None, :]
    mask = (a * rows + bound >= 0) & (columns * b < other) & (rows + columns <= bound + other)
    expected = np.broadcast_to((a * r + bound >= 0) & (c * b < other) & (r + c <= bound + other), (n, m))
    box, inside = mask.resolve((n, m))
    got = np.zeros((n, m), dtype=bool)
    area = tuple(slice(low, high) for low, high in box)
    got[area] = True if inside is None else inside
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("mask", [None, True, np.True_])
def test_a_mask_that_says_nothing_is_none(mask: Any) -> None:
    assert Mask.of(mask) is None


SELECTIONS: list[tuple[str, tuple[int, ...]]] = [
    ("x[2]", (4, 6)),
    ("x[1:3, 2:6:2]", (4, 6)),
    ("x[..., 1]", (4, 5, 6)),
    ("x[:, None, 3]", (4, 6)),
    ("x[r, c]", (4, 6)),
    ("x[1, r, c + 1]", (3, 4, 6)),
    ("x[r, 2, c]", (4, 3, 6)),
    ("x[r + 1, c * 2]", (5, 6)),
    ("x[c, r]", (4, 4)),
    ("x[r3, 2 * k3 + c3]", (4, 8)),
    ("x[r, 0]", (4, 6)),
]


@pytest.mark.parametrize(("expression", "shape"), SELECTIONS)
def test_views_are_numpys_indexing(expression: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    machine = Machine()
    tile = machine.argument(array)
    ours = {"r": arange(0, 4)[:, None], "c": arange(0, 3)[None, :], "r3": arange(0, 4)[:, None, None],
            "k3": arange(0, 3)[None, :, None], "c3": arange(0, 2)[None, None, :]}  # fmt: skip
    theirs = {name: index.array() for name, index in ours.items()}
    got = eval(expression, {}, {"x": tile, **ours})  # noqa: S307
    expected = eval(expression, {}, {"x": array, **theirs})  # noqa: S307
    np.testing.assert_array_equal(machine.index_values(got), expected)


@given(st.data())
def test_slices_of_slices_are_numpys(data: st.DataObject) -> None:
    array = np.arange(8 * 9).reshape(8, 9)
    machine = Machine()
    tile = machine.argument(array)
    for _ in range(2):
        key = []
        for n in array.shape:
            start = data.draw(st.integers(0, n - 1))
            stop = data.draw(st.integers(start + 1, n))
            key.append(slice(start, stop, data.draw(st.integers(1, 3))))
        array, tile = array[tuple(key)], select(tile, tuple(key))
        np.testing.assert_array_equal(machine.index_values(tile), array)


def test_a_view_is_read_when_it_is_used() -> None:
    body = """
    out = nl.ndarray((4, 2), dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((nl.par_dim(4), 2), dtype=a.dtype, buffer=nl.sbuf)
    view = tile[0:4, 0:2]
    tile[0:4, 0:2] = nl.load(a[0:4, 0:2])
    nl.store(out, view)
    return out
    """
    a = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(run(body, a).result, a)


boxes = st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(0, 6), st.integers(1, 4))


@given(st.lists(boxes, max_size=20), boxes)
def test_coverage_is_a_bitmap(writes: list[tuple[int, ...]], queried: tuple[int, ...]) -> None:
    def box(t: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        return (t[0], min(5, t[0] + t[1])), (t[2], min(7, t[2] + t[3]))

    coverage, bitmap = WriteCoverage((5, 7)), np.zeros((5, 7), dtype=bool)
    for write in writes:
        (a, b), (c, d) = box(write)
        coverage.write(box(write))
        bitmap[a:b, c:d] = True
    (a, b), (c, d) = box(queried)
    assert coverage.holds(box(queried)) == bool(bitmap[a:b, c:d].all())
    np.testing.assert_array_equal(coverage.missing(), ~bitmap)


def test_coverage_of_tiles_in_order_stays_a_few_boxes() -> None:
    coverage = WriteCoverage((4096, 7168))
    for i in range(32):
        for j in range(14):
            coverage.write(((i * 128, i * 128 + 128), (j * 512, j * 512 + 512)))
    assert coverage.full
