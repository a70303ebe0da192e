"""What does not fit into SBUF is spilled piece by piece."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from support.nki_current_source import run as run_current

from accelopt_profiling.nki.data.instruction import BlockInfo, TracedInstruction
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.estimate import estimate
from accelopt_profiling.nki.time_model.hardware import AS_WRITTEN, hardware
from accelopt_profiling.nki.time_model.pieces import cut_into_pieces
from accelopt_profiling.nki.time_model.step import Kinds

#: A product whose right operand is loaded once into one tile of ``width`` columns for each of 32 rows.
RESIDENT = """
k, m = a.shape
out = nl.ndarray((m, {width}), dtype=a.dtype, buffer=nl.shared_hbm)
whole = nl.ndarray((128, k // 128, {width}), dtype=a.dtype, buffer=nl.sbuf)
for i in range(k // 128):
    nisa.dma_copy(dst=whole[:, i, :], src=b[i * 128:i * 128 + 128, 0:{width}])
for j in range(m // 128):
    total = nl.ndarray((128, {width}), dtype=nl.float32, buffer=nl.psum)
    for i in range(k // 128):
        left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[i * 128:i * 128 + 128, j * 128:j * 128 + 128])
        nisa.nc_matmul(dst=total, stationary=left, moving=whole[:, i, :])
    result = nl.ndarray((128, {width}), dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    nisa.dma_copy(dst=out[j * 128:j * 128 + 128, :], src=result)
return out
"""


def test_what_does_not_fit_costs_in_proportion() -> None:
    """A tile that is 1 % larger than the room is not moved as a whole for each use: its time grows by what is spilled,
    and never falls with its size."""
    width, rows = 512, 32
    shapes = [np.broadcast_to(np.zeros((), np.float32), s) for s in ((rows * 128, 1024), (rows * 128, width))]
    outcome = run_current(RESIDENT.format(width=width), *shapes, mode="trace")
    assert outcome.fault is None, outcome.fault
    trn2 = hardware("trn2")
    small = 4 * 512 + 4 * width + trn2.compiler.reserve_bytes
    times = []
    for share in (1.4, 1.0, 0.99, 0.95, 0.9, 0.7, 0.5, 0.25, 0.1):
        room = int(rows * width * 4 * share) + small
        times.append(estimate(outcome.trace, replace(trn2, sbuf_usable=room)).us)
    assert all(later >= 0.95 * earlier for earlier, later in pairwise(times))
    assert all(later < 1.5 * earlier for earlier, later in pairwise(times))
    assert 1.1 * times[0] < times[-1] < 2 * times[0]


def test_only_the_pieces_that_find_no_room_are_moved() -> None:
    block = BlockInfo(1, MemorySpace.SBUF, (128, 4, 512), 4, "t", 1, False)
    kinds = Kinds(AS_WRITTEN)
    steps = []
    for i in range(4):
        write = TracedInstruction("memset", ("VectorE",), 1, 128, 512)
        write.writes = [(block, ((0, 128), (i, i + 1), (0, 512)))]
        steps.append(write)
    read = TracedInstruction("tensor_copy", ("VectorE",), 2, 128, 1024)
    read.reads = [(block, ((0, 128), (1, 3), (0, 512)))]
    pieces = kinds.of([*steps, read])
    assert cut_into_pieces(pieces)
    sizes = [piece.free_bytes for step in pieces[:4] for piece, _ in step.writes]
    assert sizes == [2048] * 4
    assert [piece for piece, _ in pieces[4].reads] == [pieces[1].writes[0][0], pieces[2].writes[0][0]]
    overlapping = TracedInstruction("memset", ("VectorE",), 3, 128, 512)
    overlapping.writes = [(block, ((0, 128), (0, 2), (0, 256)))]
    assert not cut_into_pieces(kinds.of([*steps, overlapping]))
