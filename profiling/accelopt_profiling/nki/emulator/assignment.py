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


class AssigningExecutor(Executor):
    """Executes what Python's assignments to tiles mean."""

    def assign(self, target: Tile, value: Any) -> None:
        """``target[...] = value``: a fresh result goes there directly, anything else is copied by an instruction."""
        if isinstance(value, Tile) and value.same_place(target):
            return  # Python ends ``x[i] += y`` with ``x[i] = x[i]``; ``accumulate`` has added
        if target.block.info.constant:
            self.fault("unsupported", "A kernel's input cannot be written; use a tensor of your own.")
        destination = self.operand(target, "destination")
        if isinstance(value, LoopReduction):
            self._reduce(destination, value)
            return
        if not isinstance(value, Tile):
            if isinstance(value, BlockArray):
                self.fault("unsupported", "The value names many tiles; index its block dimensions.")
            instruction = self.stream.emit("memset", (VECTOR,), destination)
            instruction.writes.append(destination.region())
            self.check_range(destination, None)
            self.write(destination, self.defer(np.asarray, self.number(value)))
            return
        source = self.operand(value)
        self.check_fits(source, destination.shape)
        self.check_range(destination, value.valid)
        if value.fresh and value.producer is not None and value.size == destination.size:
            self._redirect(destination, value, source)
            return
        instruction = self.stream.emit("tensor_copy", (SCALAR, VECTOR), destination)
        if destination.block.info.memory is MemorySpace.HBM or source.block.info.memory is MemorySpace.HBM:
            self.fault("unsupported", "HBM is read with nl.load and written with nl.store.")
        instruction.reads.append(source.region())
        instruction.writes.append(destination.region())
        self.write(destination, self.defer(copy_values, source))

    def _redirect(self, destination: Tile, value: Tile, source: Tile) -> None:
        """Make the instruction that produced ``value`` write to ``destination`` instead."""
        assert value.producer is not None
        if destination.block.info.memory is MemorySpace.HBM:
            self.fault("unsupported", "HBM is written with nl.store, not by assignment.")
        self.recorder.forbid_replay_of_change(value.producer)
        value.producer.writes[-1] = destination.region()
        block = destination.block
        step = value.step
        if self.deferred.is_newest(step) and value.dtype == block.dtype:
            self.deferred.steps.pop()
        elif step is not None:
            step = ComputeStep(copy_values, (self.read(source, value.valid),))
        self.write(destination, step, value.valid, value.where)
        value.fresh = False
        value.step = None
        if value.shape == destination.shape:
            value.block, value.offset, value.dims = block, destination.offset, destination.dims
            value.affine_offset = destination.affine_offset

    def accumulate(self, target: Tile, value: Any) -> Tile:
        """``target += value``. In PSUM a matrix product adds for free; elsewhere VectorE adds."""
        destination = self.operand(target, "destination")
        if (
            isinstance(value, Tile)
            and value.fresh
            and value.producer is not None
            and _psum_product(value, destination)
        ):
            source = self.operand(value)
            self.check_fits(source, destination.shape)
            self.recorder.forbid_replay_of_change(value.producer)
            value.producer.accumulate = True
            value.producer.writes[-1] = destination.region()
            box, where = value.valid, value.where
        else:
            operands = [destination, value]
            source = self.run("tensor_tensor", (VECTOR,), operands, np.add, destination.dtype)
            assert source.producer is not None
            source.producer.writes[-1] = destination.region()
            self._redirect(destination, source, source)
            return target
        area = destination if box is None else destination.within(narrow(box, destination.shape))
        if destination.positions is None and _psum_product(value, destination) and not self.touched(area):
            # the first product of a group overwrites what the bank held before
            value.producer.accumulate = False
            self._redirect(destination, value, source)
            return target
        self.check_written(area)
        step = value.step
        if step is not None and 0 not in area.shape:
            if self.deferred.is_newest(step) and where is None and box is None:
                step.adds, step.target = True, destination.as_view()
            else:
                old, new = self.read(area), self.read(source, box)
                self.write(area, ComputeStep(np.add, (old, new)), None, where)
        value.fresh, value.step = False, None
        return target

    def _reduce(self, destination: Tile, reduction: LoopReduction) -> None:
        source = self.operand(reduction.tile)
        self.check_fits(source, destination.shape)
        if reduction.first:
            instruction = self.stream.emit("tensor_copy", (VECTOR, SCALAR), destination)
            instruction.reads.append(source.region())
            instruction.writes.append(destination.region())
            self.write(destination, self.defer(copy_values, source))
            return
        result = self.run(
            "tensor_tensor", (VECTOR,), [destination, source], BINARY[reduction.operation], destination.dtype
        )
        assert result.producer is not None
        step = result.step
        self._redirect(destination, result, result)
        if self.deferred.order is not None and not self.deferred.is_newest(step):
            self.deferred.order.keep_order()  # a copy in another type came between


def _psum_product(value: Tile, destination: Tile) -> bool:
    return (
        value.producer is not None
        and value.producer.opcode == "nc_matmul"
        and destination.block.info.memory is MemorySpace.PSUM
    )
