"""The machine that kernels run on: it holds memory, runs instructions and keeps their trace.

Two modes over the same code: "full" computes values, "trace" keeps shapes, engines, bytes and dependencies only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, Literal, NoReturn

import numpy as np

from accelopt_profiling.measurement import Finding
from accelopt_profiling.nki import rules
from accelopt_profiling.nki.coverage import Box
from accelopt_profiling.nki.dtypes import is_float
from accelopt_profiling.nki.fault import KernelFault
from accelopt_profiling.nki.index import BoolArray, Mask
from accelopt_profiling.nki.instruction import DMA, SCALAR, TENSOR, VECTOR, Instruction, Memory, Place, Trace
from accelopt_profiling.nki.selection import select
from accelopt_profiling.nki.tile import Array, Block, BlockArray, Tile, contiguous

Mode = Literal["full", "trace"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_ours: dict[str, bool] = {}


class Pending:
    """A reduction over loop counters that waits for the place it is assigned to."""

    __slots__ = ("first", "operation", "tile")

    def __init__(self, tile: Tile, operation: str, first: bool) -> None:
        self.tile, self.operation, self.first = tile, operation, first


class Machine:
    """One emulated NeuronCore.

    ``record`` keeps the trace; ``findings`` collects what is worth telling; a violation that makes going on
    pointless raises ``KernelFault``.
    """

    def __init__(self, mode: Mode = "full", record: bool = True, limits: rules.Limits | None = None) -> None:
        self.mode = mode
        self.full = mode == "full"
        self.record = record
        self.limits = limits or rules.Limits()
        self.trace = Trace()
        self.findings: list[Finding] = []
        self._reported: set[tuple[str, int]] = set()
        self._places = 0
        self.program: tuple[int, ...] = (0,)
        self.grid: tuple[int, ...] = (1,)
        self._shared: list[Tile] = []
        self._next_shared = 0
        self.arithmetic_of: Callable[..., Tile] | None = None

    # Messages

    def line(self) -> int:
        """The 1-based line of the innermost frame outside this package: the user's own."""
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            ours = _ours.get(name)
            if ours is None:
                ours = _ours[name] = os.path.abspath(name).startswith(_PACKAGE)
            if not ours:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return 0

    def fault(self, code: str, message: str) -> NoReturn:
        """End the run with a violation on the user's line."""
        raise KernelFault(code, message, self.line())

    def tell(
        self, code: str, message: str, severity: Literal["error", "warning", "information"] = "error"
    ) -> None:
        """Note a violation and go on. Each code is told once per line."""
        line = self.line()
        if (code, line) not in self._reported:
            self._reported.add((code, line))
            self.findings.append(Finding(code, line, severity, message))

    # Memory

    def _place(
        self, memory: Memory, shape: tuple[int, ...], item: int, name: str, line: int, constant: bool
    ) -> Place:
        self._places += 1
        return Place(self._places, memory, shape, item, name, line, constant)

    def allocate(
        self,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        memory: Memory,
        name: str = "",
        fill: Any = None,
        line: int = 0,
    ) -> Tile:
        """A new block of ``shape``: unwritten, or filled with ``fill`` (lazily: no values until it is read)."""
        shape = tuple(shape)
        if memory is not Memory.HBM:
            rules.check_block(self, shape, dtype.itemsize, memory)
        place = self._place(memory, shape, dtype.itemsize, name, line or self.line(), False)
        block = Block(place, dtype)
        tile = Tile(self, block, 0, contiguous(shape))
        if fill is not None:
            if self.full:
                block.storage = np.full(shape, fill, dtype=dtype)
            block.coverage.full = True
            if memory is Memory.SBUF:
                instruction = self.emit("memset", (VECTOR,), tile)
                instruction.writes.append((place, tile.box()))
        return tile

    def shared(self, shape: Sequence[int], dtype: np.dtype[Any], name: str) -> Tile:
        """An output in HBM; the programs of one launch share it, by order of allocation."""
        if self._next_shared < len(self._shared):
            tile = self._shared[self._next_shared]
        else:
            tile = self.allocate(shape, dtype, Memory.HBM, name)
            self._shared.append(tile)
        self._next_shared += 1
        return tile

    def begin_program(self, program: tuple[int, ...], grid: tuple[int, ...]) -> None:
        """Start the next program of a launch over ``grid``."""
        self.program, self.grid, self._next_shared = program, grid, 0
        if not any(program):
            self._shared = []

    def argument(self, array: Array) -> Tile:
        """An input in HBM: the caller's own array, never written."""
        place = self._place(Memory.HBM, array.shape, array.dtype.itemsize, "", 0, True)
        storage = np.ascontiguousarray(array) if self.full else None
        block = Block(place, array.dtype, storage, full=True)
        self.trace.input_bytes += array.nbytes
        return Tile(self, block, 0, contiguous(array.shape))

    def output(self, tile: Tile) -> Array:
        """The values of a returned tensor as a plain array. What was never written is NaN, and told."""
        self.trace.output_bytes += tile.size * tile.dtype.itemsize
        if not tile.block.coverage.holds(tile.box()):
            name = tile.block.place.name or f"tensor of shape {tile.shape}"
            self.findings.append(
                Finding(
                    "uninitialised-read",
                    tile.block.place.line,
                    "error",
                    f"The returned {name} is not written everywhere.",
                )
            )
            if self.full:
                self._poison(tile.block)
        if not self.full:
            return np.broadcast_to(np.zeros((), dtype=tile.dtype), tile.shape)
        return tile.array() if tile.covers_block() else tile.array().copy()

    def _poison(self, block: Block) -> None:
        block.writable()[block.coverage.missing()] = np.nan if is_float(block.dtype) else 4

    # Views

    def select(self, tile: Tile, key: Any) -> Tile:
        return select(tile, key)

    def reshape(self, tile: Tile, shape: Sequence[int]) -> Tile:
        """The same elements in another shape, without moving them."""
        wanted = [int(n) for n in shape]
        if -1 in wanted:
            wanted[wanted.index(-1)] = tile.size // max(1, -prod(wanted))
        if prod(wanted) != tile.size:
            self.fault(
                "out-of-bounds", f"A tensor of shape {tile.shape} cannot be reshaped to {tuple(wanted)}."
            )
        if not tile.covers_block():
            self.fault("unsupported", "Only a whole tensor can be reshaped; index the result instead.")
        return Tile(self, tile.block, 0, contiguous(tuple(wanted)))

    def operand(self, value: Any, what: str = "operand") -> Tile:
        """A tile as an instruction reads it: at least two dimensions, partition first."""
        if isinstance(value, BlockArray):
            self.fault("unsupported", f"The {what} names many tiles; index its block dimensions.")
        if not isinstance(value, Tile):
            self.fault("unsupported", f"The {what} must be a tile, not {type(value).__name__}.")
        if value.positions is None and len(value.dims) < 2:
            dims = (*value.dims, (1, 0)) if value.dims else ((1, 0), (1, 0))
            view = Tile(self, value.block, value.offset, dims)
            view.out_of_range = value.out_of_range
            return view
        return value

    # Values

    def values(self, tile: Tile, box: Box | None = None) -> Array | None:
        """Read a view; None in trace mode. Unwritten memory is told and reads as NaN."""
        if box is not None and tile.positions is None:
            tile = tile.within(_narrow(box, tile.shape))
        if not tile.block.coverage.holds(tile.box()):
            self.tell("uninitialised-read", f"{_describe(tile)} is read here before all of it was written.")
            if self.full:
                self._poison(tile.block)
            tile.block.coverage.full = True  # told once; the poison is in place
        if not self.full:
            return None
        if tile.positions is not None:
            storage = tile.block.storage
            assert storage is not None
            return storage.reshape(-1)[tile.positions]
        return tile.array()

    def write(
        self, tile: Tile, values: Array | None, box: Box | None = None, where: BoolArray | None = None
    ) -> None:
        """Write ``values`` (broadcast) to a view, inside ``box`` and where ``where`` says so."""
        block = tile.block
        if tile.positions is not None:
            block.coverage.write_positions(tile.positions)
            if self.full:
                block.writable().reshape(-1)[tile.positions] = values
            return
        if box is not None:
            tile = tile.within(_narrow(box, tile.shape))
        if 0 in tile.shape:
            return
        from accelopt_profiling.nki.tile import bounding_box

        touched, dense = bounding_box(tile.offset, tile.dims, block.shape)
        if dense and where is None:
            block.coverage.write(touched)
        else:
            flat = np.zeros(tile.shape, dtype=np.int64) + tile.offset
            for axis, (num, step) in enumerate(tile.dims):
                flat += (np.arange(num) * step).reshape(
                    [-1 if axis == d else 1 for d in range(len(tile.dims))]
                )
            block.coverage.write_positions(
                flat if where is None else flat[np.broadcast_to(where, tile.shape)]
            )
        if self.full and values is not None:
            target = tile.array(writable=True)
            with np.errstate(over="ignore", invalid="ignore"):
                if where is None:
                    np.copyto(target, values, casting="unsafe")
                else:
                    np.copyto(target, values, casting="unsafe", where=where)

    # Instructions

    def emit(self, opcode: str, engines: tuple[str, ...], shaped: Tile) -> Instruction:
        """Add an instruction whose cost follows the shape of ``shaped``."""
        shape = shaped.shape
        partitions = shape[0] if shape else 1
        instruction = Instruction(opcode, engines, self.line(), partitions, prod(shape[1:]))
        instruction.itemsize = shaped.dtype.itemsize
        if self.record:
            self.trace.instructions.append(instruction)
        return instruction

    def fresh(self, shape: Sequence[int], dtype: np.dtype[Any], memory: Memory, values: Array | None) -> Tile:
        """A tile that holds the result of an instruction and has no other home yet."""
        shape = tuple(shape)
        if len(shape) < 2:
            shape = (*shape, 1) if shape else (1, 1)
        tile = self.allocate(shape, dtype, memory)
        tile.fresh = True
        if self.full and values is not None:
            stored = np.ascontiguousarray(values, dtype=dtype).reshape(shape)
            tile.block.storage = stored
            tile.block.borrowed = not stored.flags.owndata
        return tile

    def run(
        self, opcode: str, engines: tuple[str, ...], operands: Sequence[Any], function: Callable[..., Array],
        dtype: np.dtype[Any] | None = None, mask: Any = None, shape: Sequence[int] | None = None,
        memory: Memory = Memory.SBUF, cost: Tile | None = None,
    ) -> Tile:  # fmt: skip
        """Run an instruction: read ``operands`` (tiles or numbers), apply ``function``, return a fresh tile.

        ``shape`` defaults to the operands' broadcast shape; ``cost`` names the operand that sets the cost (the
        first by default). Tiles are computed in float32 and rounded to ``dtype``.
        """
        tiles = [self.operand(o) if isinstance(o, (Tile, BlockArray)) else o for o in operands]
        real = [t for t in tiles if isinstance(t, Tile)]
        first = real[0] if cost is None else cost
        for tile in real:
            rules.check_operand(self, tile, opcode)
        result_shape = tuple(shape) if shape is not None else self.broadcast_shape(real)
        box, where = self._mask(mask, result_shape)
        instruction = self.emit(opcode, engines, first)
        read_box = box if shape is None else None
        arrays: list[Any] = []
        for tile in tiles:
            if isinstance(tile, Tile):
                self._check_range(tile, read_box)
                instruction.reads.append((tile.block.place, tile.box()))
                instruction.psum_inputs += tile.block.place.memory is Memory.PSUM
                arrays.append(_wide(self.values(tile, read_box)))
                tile.fresh = False
            else:
                arrays.append(tile)
        kind = dtype or first.dtype
        values = None
        if self.full and (box is None or all(low < high for low, high in box)):
            with np.errstate(all="ignore"):
                values = function(*arrays)
        return self._finish(instruction, result_shape, kind, memory, values, box, where)

    def _finish(
        self, instruction: Instruction, shape: tuple[int, ...], dtype: np.dtype[Any], memory: Memory,
        values: Array | None, box: Box | None, where: BoolArray | None,
    ) -> Tile:  # fmt: skip
        if box is None and where is None:
            if values is not None and values.shape != shape:
                values = np.broadcast_to(values, shape)
            tile = self.fresh(shape, dtype, memory, values)
            tile.block.coverage.full = True
        else:
            tile = self.fresh(shape, dtype, memory, None)
            self.write(tile, values, box, where)
            tile.valid, tile.where = box, where
        instruction.writes.append((tile.block.place, tile.box()))
        tile.producer = instruction
        return tile

    def _mask(self, mask: Any, shape: tuple[int, ...]) -> tuple[Box | None, BoolArray | None]:
        resolved = Mask.of(mask)
        if resolved is None:
            return None, None
        box, where = resolved.resolve(shape)
        if where is None and all(low == 0 and high == n for (low, high), n in zip(box, shape, strict=True)):
            return None, None
        return box, where

    def _check_range(self, tile: Tile, box: Box | None) -> None:
        for size, index in tile.out_of_range:
            low, high = index.low, index.high
            if box is not None:
                inner = _narrow(box, tile.shape)[len(tile.shape) - len(index.dims) :]
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
        """The shape of an element-wise result.

        Raises:
            KernelFault: the shapes do not fit each other.
        """
        try:
            return np.broadcast_shapes(*[t.shape for t in tiles])
        except ValueError:
            shapes = " and ".join(str(t.shape) for t in tiles)
            return self.fault("out-of-bounds", f"The shapes {shapes} do not fit each other.")

    # Data movement

    def load(self, source: Tile, dtype: np.dtype[Any] | None, mask: Any) -> Tile:
        """Read HBM into a fresh tile in SBUF: one DMA."""
        tile = self.operand(source, "source of a load")
        if tile.block.place.memory is not Memory.HBM:
            self.tell("unsupported", "nl.load reads HBM; this tile is on the chip already: use nl.copy.")
        box, where = self._mask(mask, tile.shape)
        self._check_range(tile, box)
        instruction = self._dma("load", tile, box)
        instruction.reads.append((tile.block.place, tile.box()))
        values = self.values(tile, box) if box is None or all(low < high for low, high in box) else None
        if values is not None and tile.positions is not None and box is not None:
            values = values[tuple(slice(low, high) for low, high in box)]
        return self._finish(instruction, tile.shape, dtype or tile.dtype, Memory.SBUF, values, box, where)

    def store(self, target: Tile, value: Any, mask: Any) -> None:
        """Write a tile (or a number) to HBM: one DMA."""
        destination = self.operand(target, "destination of a store")
        if destination.block.place.constant:
            self.fault(
                "unsupported", "A kernel's input cannot be written; store to a tensor in nl.shared_hbm."
            )
        box, where = self._mask(mask, destination.shape)
        self._check_range(destination, box)
        if not isinstance(value, Tile):
            value = self.run(
                "memset", (VECTOR,), [destination], lambda _: np.asarray(value), destination.dtype
            )
        source = self.operand(value, "value of a store")
        self._fit(source, destination.shape)
        instruction = self._dma("store", destination, box)
        instruction.reads.append((source.block.place, source.box()))
        instruction.writes.append((destination.block.place, destination.box()))
        self.write(destination, self.values(source, box), box, where)
        value.fresh = False

    def _dma(self, opcode: str, dram: Tile, box: Box | None) -> Instruction:
        moved = dram.within(_narrow(box, dram.shape)) if box is not None and dram.positions is None else dram
        instruction = self.emit(opcode, (DMA,), moved)
        instruction.bytes = moved.size * moved.dtype.itemsize
        instruction.descriptors = rules.descriptors(moved)
        return instruction

    def _fit(self, source: Tile, shape: tuple[int, ...]) -> None:
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
            instruction.writes.append((destination.block.place, destination.box()))
            self._check_range(destination, None)
            self.write(destination, np.asarray(value))
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
        instruction.reads.append((source.block.place, source.box()))
        instruction.writes.append((destination.block.place, destination.box()))
        self.write(destination, self.values(source))

    def _redirect(self, destination: Tile, value: Tile, source: Tile) -> None:
        """Make the instruction that produced ``value`` write to ``destination`` instead."""
        assert value.producer is not None
        if destination.block.place.memory is Memory.HBM:
            self.fault("unsupported", "HBM is written with nl.store, not by assignment.")
        value.producer.writes[-1] = (destination.block.place, destination.box())
        block, made = destination.block, value.block
        whole = value.valid is None and value.where is None
        if whole and destination.covers_block() and made.dtype == block.dtype and made.storage is not None:
            block.storage = made.storage.reshape(block.shape)
            block.borrowed = made.borrowed
            block.coverage.full = True
        elif whole:
            self.write(destination, _shaped(self.values(source), destination.shape))
        else:
            self.write(destination, self.values(source, value.valid), value.valid, value.where)
        value.fresh = False
        if value.shape == destination.shape:
            value.block, value.offset, value.dims = block, destination.offset, destination.dims

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
            value.producer.accumulate = True
            value.producer.writes[-1] = (destination.block.place, destination.box())
            box, where = value.valid, value.where
        else:
            operands = [destination, value]
            source = self.run("tensor_tensor", (VECTOR,), operands, np.add, destination.dtype)
            assert source.producer is not None
            source.producer.writes[-1] = (destination.block.place, destination.box())
            self.write(destination, self.values(source))
            target.settled = True
            return target
        if self.full:
            area = destination if box is None else destination.within(_narrow(box, destination.shape))
            old, new = self.values(area), self.values(source, box)
            if old is not None and new is not None and 0 not in area.shape:
                into = area.array(writable=True)
                if where is None:
                    np.add(into, new, out=into, casting="unsafe")
                else:
                    np.add(into, new, out=into, casting="unsafe", where=where)
        value.fresh = False
        target.settled = True
        return target

    def _combine(self, destination: Tile, pending: Pending) -> None:
        from accelopt_profiling.nki.operations import BINARY

        source = self.operand(pending.tile)
        self._fit(source, destination.shape)
        if pending.first:
            instruction = self.emit("tensor_copy", (VECTOR, SCALAR), destination)
            instruction.reads.append((source.block.place, source.box()))
            instruction.writes.append((destination.block.place, destination.box()))
            self.write(destination, _shaped(self.values(source), destination.shape))
            return
        result = self.run(
            "tensor_tensor", (VECTOR,), [destination, source], BINARY[pending.operation], destination.dtype
        )
        assert result.producer is not None
        result.producer.writes[-1] = (destination.block.place, destination.box())
        self.write(destination, self.values(result))

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
            view = Tile(self, source.block, source.offset, dims)
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
            instruction.reads.append((source.block.place, source.box()))
            place = self._place(
                Memory.PSUM, (wanted[0], min(width, columns - start)), 4, "", instruction.line, False
            )
            whole = tuple((0, n) for n in place.shape)
            instruction.writes.append((place, whole))
            copy = self.emit("tensor_copy", (SCALAR, VECTOR), source)
            copy.partitions, copy.free, copy.psum_inputs = wanted[0], instruction.free, 1
            copy.reads.append((place, whole))
            if result is None:
                values = self.values(source)
                stored = None if values is None else np.broadcast_to(values, wanted)
                result = self.fresh(wanted, source.dtype, Memory.SBUF, stored)
                result.block.coverage.full = True
            copy.writes.append((result.block.place, result.box()))
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
        return self.arithmetic_of(name, *operands)


def _narrow(box: Box, shape: tuple[int, ...]) -> Box:
    """``box`` for an operand of ``shape`` that may be broadcast: its dimensions of size 1 stay whole."""
    aligned = box[len(box) - len(shape) :] if len(shape) <= len(box) else box
    return tuple(
        (0, 1) if n == 1 and high > low else (low, high)
        for (low, high), n in zip(aligned, shape, strict=True)
    )


def _wide(values: Array | None) -> Array | None:
    if values is not None and values.dtype.itemsize < 4 and is_float(values.dtype):
        return values.astype(np.float32)
    return values


def _shaped(values: Array | None, shape: tuple[int, ...]) -> Array | None:
    if values is None or values.shape == shape:
        return values
    return values.reshape(shape) if values.size == prod(shape) else np.broadcast_to(values, shape)


def _psum_product(value: Tile, destination: Tile) -> bool:
    return (
        value.producer is not None
        and value.producer.opcode == "nc_matmul"
        and destination.block.place.memory is Memory.PSUM
    )


def _describe(tile: Tile) -> str:
    place = tile.block.place
    made = f" (made on line {place.line})" if place.line else ""
    return f"{place.name or 'A tile'}{made} in {place.memory.value}"


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


@contextmanager
def running(machine: Machine) -> Any:
    """Make ``machine`` the one that the front end's functions act on."""
    _current.append(machine)
    try:
        yield machine
    finally:
        _current.pop()
