"""The machine that kernels run on: single instructions, and the movement of data between memories and names.

Two modes over the same code: "full" computes values, "trace" keeps shapes, engines, bytes and dependencies only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import BINARY
from accelopt_profiling.nki.compute.step import Step
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import SCALAR, TENSOR, VECTOR, Instruction, Memory
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.diagnostics import KernelFault
from accelopt_profiling.nki.emulator.executor import narrow
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.emulator.transfers import Transfers
from accelopt_profiling.nki.movement import same, turned


class Pending:
    """A reduction over loop counters that waits for the place it is assigned to."""

    __slots__ = ("first", "operation", "tile")

    def __init__(self, tile: Tile, operation: str, first: bool) -> None:
        self.tile, self.operation, self.first = tile, operation, first


class Machine(Transfers):
    """One emulated NeuronCore, as the front ends see it."""

    def settle(self, target: Tile, value: Tile) -> None:
        """Make the instruction that produced ``value`` write to ``target``, which has as many elements."""
        if target.block.place.constant:
            self.fault("unsupported", "A kernel's input cannot be written; use a tensor of your own.")
        self._redirect(target, value, value)

    def product(
        self, target: Tile, left: Tile, right: Tile, function: Callable[..., Array], adds: bool
    ) -> Instruction:
        """One product of TensorE into PSUM, or ``left`` transposed: ``function`` of them, or added to what is there."""
        instruction = self.emit("nc_matmul", (TENSOR,), right)
        instruction.accumulate = adds
        for tile in (left, right):
            self._check_range(tile, None)
            instruction.reads.append(tile.region())
        instruction.writes.append(target.region())
        step = self.later(function, left, right)
        if step is not None and function is turned:
            step.inputs = step.inputs[:1]  # the right one is the identity
        if adds:
            self.seen(target)
        if step is not None:
            step.adds = adds
        self.write(target, step)
        return instruction

    def fill(self, target: Tile, value: Any, engines: tuple[str, ...]) -> None:
        """Write one number everywhere."""
        instruction = self.emit("memset", engines, target)
        instruction.writes.append(target.region())
        self.write(target, self.later(np.asarray, value))

    def assign(self, target: Tile, value: Any) -> None:
        """``target[...] = value``: a fresh result goes there directly, anything else is copied by an instruction."""
        if isinstance(value, Tile) and value.settled:
            value.settled = False  # the second half of ``x[i] += y``: it has happened
            return
        if target.block.place.constant:
            self.fault("unsupported", "A kernel's input cannot be written; use a tensor of your own.")
        destination = self.operand(target, "destination")
        if isinstance(value, Pending):
            self._combine(destination, value)
            return
        if not isinstance(value, Tile):
            if isinstance(value, BlockArray):
                self.fault("unsupported", "The value names many tiles; index its block dimensions.")
            instruction = self.emit("memset", (VECTOR,), destination)
            instruction.writes.append(destination.region())
            self._check_range(destination, None)
            self.write(destination, self.later(np.asarray, value))
            return
        source = self.operand(value)
        self._fit(source, destination.shape)
        self._check_range(destination, value.valid)
        if value.fresh and value.producer is not None and value.size == destination.size:
            self._redirect(destination, value, source)
            return
        instruction = self.emit("tensor_copy", (SCALAR, VECTOR), destination)
        if destination.block.place.memory is Memory.HBM or source.block.place.memory is Memory.HBM:
            self.fault("unsupported", "HBM is read with nl.load and written with nl.store.")
        instruction.reads.append(source.region())
        instruction.writes.append(destination.region())
        self.write(destination, self.later(same, source))

    def _redirect(self, destination: Tile, value: Tile, source: Tile) -> None:
        """Make the instruction that produced ``value`` write to ``destination`` instead."""
        assert value.producer is not None
        if destination.block.place.memory is Memory.HBM:
            self.fault("unsupported", "HBM is written with nl.store, not by assignment.")
        self.noted.changes(value.producer)
        value.producer.writes[-1] = destination.region()
        block = destination.block
        step = value.step
        if self.work.newest(step) and value.dtype == block.dtype:
            self.work.steps.pop()
        elif step is not None:
            step = Step(same, (self.seen(source, value.valid),))
        self.write(destination, step, value.valid, value.where)
        value.fresh = False
        value.step = None
        if value.shape == destination.shape:
            value.block, value.offset, value.dims = block, destination.offset, destination.dims
            value.trail = destination.trail

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
            self._fit(source, destination.shape)
            self.noted.changes(value.producer)
            value.producer.accumulate = True
            value.producer.writes[-1] = destination.region()
            box, where = value.valid, value.where
        else:
            operands = [destination, value]
            source = self.run("tensor_tensor", (VECTOR,), operands, np.add, destination.dtype)
            assert source.producer is not None
            source.producer.writes[-1] = destination.region()
            self._redirect(destination, source, source)
            target.settled = True
            return target
        area = destination if box is None else destination.within(narrow(box, destination.shape))
        self.known(area)
        step = value.step
        if step is not None and 0 not in area.shape:
            if self.work.newest(step) and where is None and box is None:
                step.adds, step.target = True, View.of(destination)
            else:
                old, new = self.seen(area), self.seen(source, box)
                self.write(area, Step(np.add, (old, new)), None, where)
        value.fresh, value.step = False, None
        target.settled = True
        return target

    def _combine(self, destination: Tile, pending: Pending) -> None:
        source = self.operand(pending.tile)
        self._fit(source, destination.shape)
        if pending.first:
            instruction = self.emit("tensor_copy", (VECTOR, SCALAR), destination)
            instruction.reads.append(source.region())
            instruction.writes.append(destination.region())
            self.write(destination, self.later(same, source))
            return
        result = self.run(
            "tensor_tensor", (VECTOR,), [destination, source], BINARY[pending.operation], destination.dtype
        )
        assert result.producer is not None
        self._redirect(destination, result, result)

    def broadcast(self, tile: Tile, shape: Sequence[int]) -> Tile:
        """Repeat a tile. Along the free dimensions a view does; along partitions TensorE multiplies by ones."""
        wanted = tuple(int(n) for n in shape)
        source = self.operand(tile)
        self._fit_broadcast(source, wanted)
        if source.shape[0] == wanted[0] or source.block.place.memory is Memory.HBM:
            dims = tuple(
                (want, step if num == want else 0)
                for (num, step), want in zip(source.dims, wanted, strict=True)
            )
            view = source.strided(source.offset, dims)
            view.out_of_range = source.out_of_range
            return view
        columns = prod(wanted[1:])
        width = self.limits.psum_bank_bytes // 4
        result: Tile | None = None
        for start in range(0, columns, width):
            instruction = self.emit("nc_matmul", (TENSOR,), source)
            instruction.partitions, instruction.free = wanted[0], min(width, columns - start)
            instruction.stationary = wanted[0]
            instruction.onezero = True
            instruction.reads.append(source.region())
            self.noted.cannot_be_repeated()
            place = self._place(
                Memory.PSUM, (wanted[0], min(width, columns - start)), 4, "", instruction.line, False
            )
            whole = tuple((0, n) for n in place.shape)
            instruction.writes.append((place, whole))
            copy = self.emit("tensor_copy", (SCALAR, VECTOR), source)
            copy.partitions, copy.free, copy.psum_inputs = wanted[0], instruction.free, 1
            copy.reads.append((place, whole))
            if result is None:
                result = self.fresh(wanted, source.dtype, Memory.SBUF)
                self.write(result, self.later(lambda x: np.broadcast_to(x, wanted), source))
            copy.writes.append(result.region())
        assert result is not None
        result.fresh = False
        return result

    def _fit_broadcast(self, tile: Tile, shape: tuple[int, ...]) -> None:
        if len(tile.shape) != len(shape) or any(
            a not in (1, b) for a, b in zip(tile.shape, shape, strict=False)
        ):
            self.fault("out-of-bounds", f"A tile of shape {tile.shape} cannot be broadcast to {shape}.")

    def arithmetic(self, name: str, *operands: Any) -> Tile:
        """Python operators on tiles; the front end says what they mean."""
        if self.arithmetic_of is None:
            self.fault("unsupported", "Tiles have no operators here.")
        result: Tile = self.arithmetic_of(name, *operands)
        return result


def _psum_product(value: Tile, destination: Tile) -> bool:
    return (
        value.producer is not None
        and value.producer.opcode == "nc_matmul"
        and destination.block.place.memory is Memory.PSUM
    )


_current: list[Machine] = []


def current() -> Machine:
    """The machine of the emulation under way.

    Raises:
        KernelFault: there is none: a kernel's body was called outside ``nki.jit``.
    """
    if not _current:
        raise KernelFault(
            "unsupported", "NKI functions work inside a kernel only; call it through @nki.jit.", 0
        )
    return _current[-1]


def emulating() -> Machine | None:
    """The machine of the emulation under way; None where there is none."""
    return _current[-1] if _current else None


@contextmanager
def running(machine: Machine) -> Iterator[Machine]:
    """Make ``machine`` the one that the front end's functions act on."""
    _current.append(machine)
    try:
        yield machine
    finally:
        _current.pop()
