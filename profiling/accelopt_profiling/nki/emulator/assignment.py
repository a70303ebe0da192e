"""Assigns to tiles: ``target[...] = value``, ``target += value``, and results of instructions with a destination."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import BINARY, copy_values
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.instruction import SCALAR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.executor import Executor, narrow
from accelopt_profiling.nki.emulator.tile import Tile


class LoopReduction:
    """A reduction over loop counters that waits for the place it is assigned to."""

    __slots__ = ("first", "operation", "tile")

    def __init__(self, tile: Tile, operation: str, first: bool) -> None:
        self.tile, self.operation, self.first = tile, operation, first


class Assignment:
    """The assignments of one run."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._diagnostics, self._recorder = executor.diagnostics, executor.recorder
        self._stream, self._deferred = executor.stream, executor.deferred

    def assign(self, target: Tile, value: Any) -> None:
        """``target[...] = value``: a fresh result goes there directly, anything else is copied by an instruction."""
        if isinstance(value, Tile) and value.settled:
            value.settled = False
            if value.same_place(target):  # the second half of ``x[i] += y``: it has happened
                return
        if target.block.info.constant:
            self._diagnostics.fault(
                "unsupported", "A kernel's input cannot be written; use a tensor of your own."
            )
        destination = self._executor.operand(target, "destination")
        if isinstance(value, LoopReduction):
            self._reduce(destination, value)
            return
        if not isinstance(value, Tile):
            if isinstance(value, BlockArray):
                self._diagnostics.fault(
                    "unsupported", "The value names many tiles; index its block dimensions."
                )
            instruction = self._stream.emit("memset", (VECTOR,), destination)
            instruction.writes.append(destination.region())
            self._executor.check_range(destination, None)
            self._executor.write(destination, self._executor.defer(np.asarray, self._executor.number(value)))
            return
        source = self._executor.operand(value)
        self._executor.check_fits(source, destination.shape)
        self._executor.check_range(destination, value.valid)
        if value.fresh and value.producer is not None and value.size == destination.size:
            self._redirect(destination, value, source)
            return
        instruction = self._stream.emit("tensor_copy", (SCALAR, VECTOR), destination)
        if destination.block.info.memory is MemorySpace.HBM or source.block.info.memory is MemorySpace.HBM:
            self._diagnostics.fault("unsupported", "HBM is read with nl.load and written with nl.store.")
        instruction.reads.append(source.region())
        instruction.writes.append(destination.region())
        self._executor.write(destination, self._executor.defer(copy_values, source))

    def _redirect(self, destination: Tile, value: Tile, source: Tile) -> None:
        """Make the instruction that produced ``value`` write to ``destination`` instead."""
        assert value.producer is not None
        if destination.block.info.memory is MemorySpace.HBM:
            self._diagnostics.fault("unsupported", "HBM is written with nl.store, not by assignment.")
        self._recorder.forbid_replay_of_change(value.producer)
        value.producer.writes[-1] = destination.region()
        block = destination.block
        step = value.step
        if self._deferred.is_newest(step) and value.dtype == block.dtype:
            self._deferred.steps.pop()
        elif step is not None:
            step = ComputeStep(copy_values, (self._executor.read(source, value.valid),))
        self._executor.write(destination, step, value.valid, value.where)
        value.fresh = False
        value.step = None
        if value.shape == destination.shape:
            value.block, value.offset, value.dims = block, destination.offset, destination.dims
            value.affine_offset = destination.affine_offset

    def accumulate(self, target: Tile, value: Any) -> Tile:
        """``target += value``. In PSUM a matrix product adds for free; elsewhere VectorE adds."""
        destination = self._executor.operand(target, "destination")
        if (
            isinstance(value, Tile)
            and value.fresh
            and value.producer is not None
            and _psum_product(value, destination)
        ):
            source = self._executor.operand(value)
            self._executor.check_fits(source, destination.shape)
            self._recorder.forbid_replay_of_change(value.producer)
            value.producer.accumulate = True
            value.producer.writes[-1] = destination.region()
            box, where = value.valid, value.where
        else:
            operands = [destination, value]
            source = self._executor.run("tensor_tensor", (VECTOR,), operands, np.add, destination.dtype)
            assert source.producer is not None
            source.producer.writes[-1] = destination.region()
            self._redirect(destination, source, source)
            target.settled = True
            return target
        area = destination if box is None else destination.within(narrow(box, destination.shape))
        if (
            destination.positions is None
            and _psum_product(value, destination)
            and not self._executor.touched(area)
        ):
            # the first product of a group overwrites what the bank held before
            value.producer.accumulate = False
            self._redirect(destination, value, source)
            target.settled = True
            return target
        self._executor.check_written(area)
        step = value.step
        if step is not None and 0 not in area.shape:
            if self._deferred.is_newest(step) and where is None and box is None:
                step.adds, step.target = True, destination.as_view()
            else:
                old, new = self._executor.read(area), self._executor.read(source, box)
                self._executor.write(area, ComputeStep(np.add, (old, new)), None, where)
        value.fresh, value.step = False, None
        target.settled = True
        return target

    def _reduce(self, destination: Tile, reduction: LoopReduction) -> None:
        source = self._executor.operand(reduction.tile)
        self._executor.check_fits(source, destination.shape)
        if reduction.first:
            instruction = self._stream.emit("tensor_copy", (VECTOR, SCALAR), destination)
            instruction.reads.append(source.region())
            instruction.writes.append(destination.region())
            self._executor.write(destination, self._executor.defer(copy_values, source))
            return
        result = self._executor.run(
            "tensor_tensor", (VECTOR,), [destination, source], BINARY[reduction.operation], destination.dtype
        )
        assert result.producer is not None
        step = result.step
        self._redirect(destination, result, result)
        if self._deferred.order is not None and not self._deferred.is_newest(step):
            self._deferred.order.keep_order()  # a copy in another type came between


def _psum_product(value: Tile, destination: Tile) -> bool:
    return (
        value.producer is not None
        and value.producer.opcode == "nc_matmul"
        and destination.block.info.memory is MemorySpace.PSUM
    )
