"""Views of a tensor's bits as another type.

Such a view is a block with a copy of the bits. It is made anew before it is read or written, where the original was
written in the meantime, and what is written to it is written to the original too.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from accelopt_profiling.nki.compute.deferred import DeferredSteps
from accelopt_profiling.nki.compute.operations import bits
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.coverage import WriteCoverage
from accelopt_profiling.nki.data.index import BoolArray
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.loop_recorder import LoopRecorder
from accelopt_profiling.nki.emulator.tile import Tile


class BlockWriter(Protocol):
    """What of an executor copies bits."""

    full: bool
    recorder: LoopRecorder
    deferred: DeferredSteps

    def write(
        self, tile: Tile, step: ComputeStep | None, box: Any = None, where: BoolArray | None = None
    ) -> None: ...


def renew(executor: BlockWriter, block: Block) -> None:
    """Copy the bits of the original to ``block``, where that was written in the meantime."""
    if not block.outdated:
        return
    block.outdated = False
    executor.recorder.forbid_replay()
    original: Tile = block.original
    renew(executor, original.block)
    written = _regrouped(_written(original), block.shape)
    block.coverage = WriteCoverage(block.shape, bool(written.all()))
    block.coverage.write_positions(np.flatnonzero(written))
    if executor.full:
        step = ComputeStep(bits, (original.as_view(),), (original.dtype, block.dtype, block.shape))
        step.target = View(block, 0, block.dims, None)
        executor.deferred.steps.append(step)


def write_original(executor: BlockWriter, block: Block) -> None:
    """Copy the bits that were written of ``block`` to its original."""
    executor.recorder.forbid_replay()
    original: Tile = block.original
    where = None if block.coverage.full else _regrouped(~block.coverage.missing(), original.shape)
    step = None
    if executor.full:
        whole = View(block, 0, block.dims, None)
        step = ComputeStep(bits, (whole,), (block.dtype, original.dtype, original.shape))
    executor.write(original, step, where=where)
    block.outdated = False


def _written(tile: Tile) -> BoolArray:
    """Return, for each element of a view, whether it was written."""
    coverage = tile.block.coverage
    if coverage.full:
        return np.ones(tile.shape, dtype=bool)
    written: BoolArray = ~coverage.missing().reshape(-1)[tile.addresses()]
    return written


def _regrouped(flags: BoolArray, shape: tuple[int, ...]) -> BoolArray:
    """Return flags of elements as those of larger or smaller ones in the same memory; one of several is enough."""
    here, there = flags.shape[-1], shape[-1]
    if there >= here:
        return np.repeat(flags, there // here, axis=-1)
    return np.asarray(flags.reshape(*shape, here // there).any(axis=-1))
