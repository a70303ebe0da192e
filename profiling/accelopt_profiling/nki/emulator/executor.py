"""Executes single instructions: checks and reads operands, defers the computation, writes the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NoReturn

import numpy as np

from accelopt_profiling.nki.compute.deferred import DeferredSteps
from accelopt_profiling.nki.compute.operations import broadcast_values
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.coverage import WRITTEN, Box
from accelopt_profiling.nki.data.index import BoolArray, Mask
from accelopt_profiling.nki.data.instruction import SCALAR, TENSOR, VECTOR, TracedInstruction
from accelopt_profiling.nki.data.layout import bounding_box
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.bit_views import renew, write_original
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.diagnostics import Diagnostics
from accelopt_profiling.nki.emulator.hardware_rules import HardwareRules
from accelopt_profiling.nki.emulator.instruction_stream import InstructionStream
from accelopt_profiling.nki.emulator.loop_recorder import LoopRecorder
from accelopt_profiling.nki.emulator.memory import DeviceMemory
from accelopt_profiling.nki.emulator.tile import Tile


class Executor:
    """Executes the instructions of one run. ``full`` tells that values are computed, not shapes alone."""

    full: bool
    memory: DeviceMemory
    rules: HardwareRules
    diagnostics: Diagnostics
    recorder: LoopRecorder
    stream: InstructionStream
    deferred: DeferredSteps

    def fault(self, code: str, message: str) -> NoReturn:
        """End the run with a violation on the kernel's current line.

        Raises:
            KernelFaultError: always.
        """
        self.diagnostics.fault(code, message)

    # Operands

    def operand(self, value: Any, what: str = "operand") -> Tile:
        """Return a tile as an instruction reads it: at least two dimensions, partition first.

        Raises:
            KernelFaultError: ``value`` is not one tile.
        """
        if isinstance(value, BlockArray):
            self.fault("unsupported", f"The {what} names many tiles; index its block dimensions.")
        if not isinstance(value, Tile):
            self.fault("unsupported", f"The {what} must be a tile, not {type(value).__name__}.")
        if value.positions is None and len(value.dims) < 2:
            dims = (*value.dims, (1, 0)) if value.dims else ((1, 0), (1, 0))
            view = value.strided(value.offset, dims)
            view.out_of_range = value.out_of_range
            return view
        return value

    def number(self, value: Any) -> Any:
        """Return a value of the kernel's own Python as an instruction holds it: one number.

        Raises:
            KernelFaultError: ``value`` is an array; an instruction has no room for one.
        """
        if isinstance(value, (np.ndarray, list, tuple)) and np.ndim(value):
            self.fault(
                "unsupported",
                f"An instruction takes tensors and numbers, not an array of shape {np.shape(value)} from Python.",
            )
        return value

    def read(self, tile: Tile, box: Box | None = None) -> View | None:
        """Return the view that an instruction reads; None in trace mode. Unwritten memory is reported and
        reads as NaN."""
        if box is not None and tile.positions is None:
            tile = tile.within(narrow(box, tile.shape))
        self.check_written(tile)
        return tile.as_view() if self.full else None

    def check_written(self, tile: Tile) -> None:
        """Report, once per block, that a tile is read of which not everything was written."""
        renew(self, tile.block)
        coverage = tile.block.coverage
        if self.recorder.loops and coverage is not WRITTEN:
            self.recorder.access(tile.as_view(), False)
        if not coverage.full:
            written = (
                coverage.holds(tile.box())
                if tile.positions is None
                else coverage.holds_positions(tile.positions)
            )
            if not written:
                self.recorder.forbid_replay()
                message = f"{_describe(tile)} is read here before all of it was written."
                self.diagnostics.report("uninitialised-read", message, "error" if self.full else "warning")
                self.memory.poison(tile.block)  # so that all of it holds something, and this is told once

    def touched(self, tile: Tile) -> bool:
        """Return whether something of a tile was written: a product adds to it then, the first one overwrites it."""
        coverage = tile.block.coverage
        renew(self, tile.block)
        touched = not coverage.untouched_in(tile.box())
        if self.recorder.loops and not coverage.full:
            self.recorder.asked_if_touched(tile.block.info, tile.affine_offset, touched)
        return touched

    def defer(
        self, op: Callable[..., Any], *operands: Any, params: tuple[Any, ...] = ()
    ) -> ComputeStep | None:
        """Return a computation on the present values of ``operands`` (tiles or plain values); None in trace mode."""
        inputs = [self.read(o) if isinstance(o, Tile) else o for o in operands]
        return ComputeStep(op, inputs, params) if self.full else None

    def index_values(self, tile: Tile) -> Array | None:
        """Return the values of a tensor of indices now; None in trace mode."""
        view = self.read(tile)
        self.recorder.forbid_replay()
        if view is None:
            return None
        self.deferred.run()
        return np.array(view.array())

    def write(
        self, tile: Tile, step: ComputeStep | None, box: Box | None = None, where: BoolArray | None = None
    ) -> None:
        """Write the result of a step, broadcast, to a tile, inside ``box`` and where the mask ``where`` is true."""
        block = tile.block
        renew(self, block)
        for copy in block.copies:
            copy.outdated = True
        if tile.positions is not None:
            self.recorder.forbid_replay()
            block.coverage.write_positions(tile.positions)
        else:
            if box is not None:
                tile = tile.within(narrow(box, tile.shape))
            if 0 in tile.shape:
                return
            touched, dense = bounding_box(tile.offset, tile.dims, block.shape)
            if self.recorder.loops and block.coverage is not WRITTEN:
                if dense and where is None:
                    self.recorder.access(tile.as_view(), True)
                else:
                    self.recorder.forbid_replay()
            if dense and where is None:
                block.coverage.write(touched)
            elif not block.coverage.full:
                flat = tile.addresses()
                block.coverage.write_positions(
                    flat if where is None else flat[np.broadcast_to(where, tile.shape)]
                )
        if step is not None:
            step.target, step.where = tile.as_view(), where
            self.deferred.steps.append(step)
        if block.original is not None:
            write_original(self, block)

    # Instructions

    def fresh_tile(
        self,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        memory: MemorySpace,
        line: int = 0,
        full: bool = False,
    ) -> Tile:
        """Return a tile for the result of an instruction that is not stored yet; ``full``: all of it gets
        written."""
        shape = tuple(shape)
        if len(shape) < 2:
            shape = (*shape, 1) if shape else (1, 1)
        tile = self.memory.allocate(shape, dtype, memory, line=line, full=full)
        tile.fresh = True
        return tile

    def run(
        self, opcode: str, engines: tuple[str, ...], operands: Sequence[Any], op: Callable[..., Any],
        dtype: np.dtype[Any] | None = None, mask: Any = None, shape: Sequence[int] | None = None,
        memory: MemorySpace = MemorySpace.SBUF, cost: Tile | None = None, params: tuple[Any, ...] = (),
        part: Box | None = None, beside: Sequence[Tile] = (),
    ) -> Tile:  # fmt: skip
        """Run an instruction: read ``operands`` (tiles or numbers), apply ``op``, return a fresh tile.

        ``shape`` defaults to the operands' broadcast shape, ``part`` to all of it; ``cost`` names the operand that sets
        the cost (the first by default), ``beside`` what it reads without computing with it. Tiles are computed in
        float32 and rounded to ``dtype``.
        """
        tiles = [self.operand(o) if isinstance(o, (Tile, BlockArray)) else o for o in operands]
        real = [t for t in tiles if isinstance(t, Tile)]
        if len(real) > 1 and shape is None:
            tiles = _one_per_partition(tiles)
            real = [t for t in tiles if isinstance(t, Tile)]
        first = real[0] if cost is None else cost
        for tile in real:
            if tile.block.info.memory is MemorySpace.HBM:
                self.rules.check_operand(tile, opcode)
        result_shape = tuple(shape) if shape is not None else self.broadcast_shape(real)
        box, where = self.resolve_mask(mask, result_shape) if mask is not None else (part, None)
        instruction = self.stream.emit(opcode, engines, first)
        inputs = self._inputs(instruction, tiles, box if shape is None else None, beside)
        step = None
        if self.full and (box is None or all(low < high for low, high in box)):
            step = ComputeStep(op, inputs, params)
        return self.finish(instruction, result_shape, dtype or first.dtype, memory, step, box, where)

    def run_into(
        self, target: Tile, opcode: str, engines: tuple[str, ...], operands: Sequence[Any], op: Callable[..., Any],
        cost: Tile, adds: bool = False, params: tuple[Any, ...] = (), beside: Sequence[Tile] = (),
    ) -> Tile:  # fmt: skip
        """Run an instruction whose result, of as many elements, lies in ``target``, or is added to it; return it."""
        if target.block.info.constant:
            self.fault("unsupported", "A kernel's input cannot be written; use a tensor of your own.")
        instruction = self.stream.emit(opcode, engines, cost)
        inputs = self._inputs(instruction, operands, None, beside)
        for tile in (target, *operands):
            index = getattr(tile, "index", None)
            if index is not None:
                instruction.reads.append(index.region())
        if adds:
            instruction.accumulate = True
            self.read(target)
        instruction.writes.append(target.region())
        step = ComputeStep(op, inputs, params) if self.full else None
        if step is not None:
            step.adds = adds
        result = target.strided(target.offset, target.dims)
        if step is not None and any(step == 0 and num > 1 for num, step in target.dims):
            # several results lie in one place: the instruction itself has them all
            result = self.fresh_tile(target.shape, target.dtype, MemorySpace.SBUF)
            result.fresh = False
            self.write(result, step)
            step = self.defer(np.copy, result)
        self.write(target, step)
        result.producer = instruction
        return result

    def _inputs(
        self, instruction: TracedInstruction, operands: Sequence[Any], box: Box | None, beside: Sequence[Tile]
    ) -> list[Any]:
        """Let an instruction read its operands, inside ``box``, and ``beside``; return what its step computes with."""
        inputs: list[Any] = []
        for operand in operands:
            if not isinstance(operand, Tile):
                inputs.append(self.number(operand))
                continue
            if operand.out_of_range:
                self.check_range(operand, box)
            instruction.reads.append(operand.region())
            instruction.psum_inputs += operand.block.info.memory is MemorySpace.PSUM
            inputs.append(self.read(operand, box))
            operand.fresh = False
        for tile in beside:
            self.check_range(tile, box)
            instruction.reads.append(tile.region())
            self.check_written(tile)
        return inputs

    def finish(
        self, instruction: TracedInstruction, shape: tuple[int, ...], dtype: np.dtype[Any], memory: MemorySpace,
        step: ComputeStep | None, box: Box | None, where: BoolArray | None,
    ) -> Tile:  # fmt: skip
        whole = box is None and where is None
        tile = self.fresh_tile(shape, dtype, memory, instruction.line, whole)
        if whole:
            if step is not None:
                step.target = tile.as_view()
                self.deferred.steps.append(step)
        else:
            self.write(tile, step, box, where)
            tile.valid, tile.where = box, where
        tile.step = step
        instruction.writes.append(tile.region())
        tile.producer = instruction
        return tile

    def resolve_mask(self, mask: Any, shape: tuple[int, ...]) -> tuple[Box | None, BoolArray | None]:
        resolved = Mask.of(mask)
        if resolved is None:
            return None, None
        box, where = resolved.resolve(shape)
        if where is None and all(low == 0 and high == n for (low, high), n in zip(box, shape, strict=True)):
            return None, None
        return box, where

    def check_range(self, tile: Tile, box: Box | None) -> None:
        if tile.positions is not None and tile.positions.size:
            size, last = prod(tile.block.shape), int(tile.positions.max())
            if last >= size or tile.positions.min() < 0:
                self.fault("out-of-bounds", f"An index leads to element {last}; the tensor has {size}.")
        for size, index in tile.out_of_range:
            low, high = index.low, index.high
            if box is not None:
                inner = narrow(box, tile.shape)[len(tile.shape) - len(index.dims) :]
                if any(a >= b for a, b in inner):
                    continue
                clipped = index[tuple(slice(a, b) for a, b in inner)]
                low, high = clipped.low, clipped.high
            if low < 0 or high >= size:
                message = (
                    f"The index covers {low} to {high}; the dimension has size {size} (0 to {size - 1})."
                )
                self.fault("out-of-bounds", message)

    def broadcast_shape(self, tiles: Sequence[Tile]) -> tuple[int, ...]:
        """Return the shape of an element-wise result.

        Raises:
            KernelFaultError: the shapes do not fit each other.
        """
        try:
            if len(tiles) == 1:
                return tiles[0].shape
            return _broadcast(*[t.shape for t in tiles])
        except ValueError:
            shapes = " and ".join(str(t.shape) for t in tiles)
            return self.fault("out-of-bounds", f"The shapes {shapes} do not fit each other.")

    def check_fits(self, source: Tile, shape: tuple[int, ...]) -> None:
        if source.shape == shape:
            return
        try:
            fits = np.broadcast_shapes(source.shape, shape) == shape
        except ValueError:
            fits = source.size == prod(shape) and [n for n in source.shape if n > 1] == [
                n for n in shape if n > 1
            ]
        if not fits:
            self.fault(
                "out-of-bounds", f"A value of shape {source.shape} is written to a place of shape {shape}."
            )

    # Instructions with a form of their own

    def fill(self, target: Tile, value: Any, engines: tuple[str, ...]) -> None:
        """Write one number everywhere."""
        self.run_into(target, "memset", engines, [value], np.asarray, target)

    def broadcast(self, tile: Tile, shape: Sequence[int]) -> Tile:
        """Repeat a tile. Along the free dimensions a view does; along partitions TensorE multiplies by ones."""
        wanted = tuple(int(n) for n in shape)
        source = self.operand(tile)
        self._fit_broadcast(source, wanted)
        if source.shape[0] == wanted[0] or source.block.info.memory is MemorySpace.HBM:
            dims = tuple(
                (want, step if num == want else 0)
                for (num, step), want in zip(source.dims, wanted, strict=True)
            )
            view = source.strided(source.offset, dims)
            view.out_of_range = source.out_of_range
            return view
        columns = prod(wanted[1:])
        width = self.rules.limits.psum_bank_bytes // 4
        result: Tile | None = None
        for start in range(0, columns, width):
            instruction = self.stream.emit("nc_matmul", (TENSOR,), source)
            instruction.partitions, instruction.free = source.shape[0], min(width, columns - start)
            instruction.stationary = wanted[0]
            instruction.onezero = True
            instruction.reads.append(source.region())
            self.recorder.forbid_replay()
            place = self.memory.describe_block(
                MemorySpace.PSUM, (wanted[0], min(width, columns - start)), 4, "", instruction.line, False
            )
            whole = tuple((0, n) for n in place.shape)
            instruction.writes.append((place, whole))
            copy = self.stream.emit("tensor_copy", (SCALAR, VECTOR), source)
            copy.partitions, copy.free, copy.psum_inputs = wanted[0], instruction.free, 1
            copy.reads.append((place, whole))
            if result is None:
                result = self.fresh_tile(wanted, source.dtype, MemorySpace.SBUF)
                self.write(result, self.defer(broadcast_values, source, params=(wanted,)))
            copy.writes.append(result.region())
        assert result is not None
        result.fresh = False
        return result

    def _fit_broadcast(self, tile: Tile, shape: tuple[int, ...]) -> None:
        if len(tile.shape) != len(shape) or any(
            a not in (1, b) for a, b in zip(tile.shape, shape, strict=False)
        ):
            self.fault("out-of-bounds", f"A tile of shape {tile.shape} cannot be broadcast to {shape}.")


def _one_per_partition(tiles: list[Any]) -> list[Any]:
    """Return the operands with a column of one value per partition in as many dimensions as the largest has: an engine
    reads its value for all elements of the partition, whatever dimensions these have."""
    rank = max(len(t.shape) for t in tiles if isinstance(t, Tile))
    if rank < 3:
        return tiles
    return [
        t.strided(t.offset, (*t.dims, *[(1, 0)] * (rank - 2)))
        if isinstance(t, Tile) and len(t.shape) == 2 and t.shape[1] == 1 and t.positions is None
        else t
        for t in tiles
    ]


#: ``np.broadcast_shapes``, for the few shapes that a kernel has.
_broadcast = lru_cache(maxsize=1024)(np.broadcast_shapes)


def narrow(box: Box, shape: tuple[int, ...]) -> Box:
    """``box`` for an operand of ``shape`` that may be broadcast: its dimensions of size 1 stay whole."""
    aligned = box[len(box) - len(shape) :] if len(shape) <= len(box) else box
    return tuple(
        (0, 1) if n == 1 and high > low else (low, high)
        for (low, high), n in zip(aligned, shape, strict=True)
    )


def _describe(tile: Tile) -> str:
    info = tile.block.info
    origin = f" (made on line {info.line})" if info.line else ""
    return f"{info.name or 'A tile'}{origin} in {info.memory.value}"
