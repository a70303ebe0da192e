"""Addresses and loops of the current dialect that depend on values: gathers, scatters, registers."""

from __future__ import annotations

import numpy as np
import pytest
from support.nki_current_source import FIRST_LINE, RNG, run

GATHER = """
out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
rows, tile = sbuf(4, 1, dtype=nl.int32), sbuf(4, 8)
nisa.dma_copy(rows, b)
nisa.memset(tile, -1.0)
nisa.dma_copy(tile, a.{view}, oob_mode=nisa.oob_mode.{mode})
nisa.dma_copy(out, tile)
return out
"""


@pytest.mark.parametrize(
    "view", ["ap([[8, 4], [1, 8]], vector_offset=rows, indirect_dim=0)", "vector_select(0, rows)"]
)
def test_rows_named_by_a_tensor_are_gathered(view: str) -> None:
    table_, rows = RNG.standard_normal((16, 8), dtype=np.float32), np.array([[3], [1], [15], [3]], np.int32)
    np.testing.assert_array_equal(
        run(GATHER.format(view=view, mode="error"), table_, rows).result, table_[rows[:, 0]]
    )
    beyond = np.array([[3], [16], [0], [1]], np.int32)
    stopped = run(GATHER.format(view=view, mode="error"), table_, beyond).fault
    assert stopped is not None
    assert (stopped.code, stopped.line) == ("out-of-bounds", FIRST_LINE + 4)
    skipped = run(GATHER.format(view=view, mode="skip"), table_, beyond).result
    np.testing.assert_array_equal(skipped[[0, 2, 3]], table_[[3, 0, 1]])
    assert (skipped[1] == -1).all()


def test_rows_are_scattered() -> None:
    body = """
    out = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, a)
    rows, tile = sbuf(4, 1, dtype=nl.int32), sbuf(4, 8)
    nisa.dma_copy(rows, b)
    nisa.memset(tile, -1.0)
    nisa.dma_copy(out.ap([[8, 4], [1, 8]], vector_offset=rows), tile)
    return out
    """
    table_, rows = RNG.standard_normal((16, 8), dtype=np.float32), np.array([[3], [1], [15], [7]], np.int32)
    expected = table_.copy()
    expected[rows[:, 0]] = -1
    np.testing.assert_array_equal(run(body, table_, rows).result, expected)


def test_loops_on_registers() -> None:
    body = """
    count = nisa.register_alloc()
    cell = sbuf(1, 1, dtype=nl.int32)
    nisa.dma_copy(cell, a)
    nisa.register_load(count, cell)
    total, now = sbuf(1, 1), sbuf(1, 1, dtype=nl.int32)
    nisa.memset(total, 0.0)
    def add(i):
        nisa.register_store(now, i)
        nisa.tensor_tensor(total, total, now, nl.add)
    nl.fori_loop(0, count, add)
    out = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, total)
    return out
    """
    count = np.array([[5]], np.int32)
    assert run(body, count).result == 10
    unknown = run(body, count, mode="trace").fault
    assert unknown is not None
    assert "without values" in unknown.message
