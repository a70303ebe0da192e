"""The chip under emulation: its memory, its messages, and the trace of what it was asked to do."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import prod
from types import FrameType
from typing import Any, Literal, NoReturn

import numpy as np

from accelopt_profiling.measurement import Finding
from accelopt_profiling.nki.compute.step import Step, Work
from accelopt_profiling.nki.data.block import Array, Block
from accelopt_profiling.nki.data.coverage import WRITTEN
from accelopt_profiling.nki.data.dtypes import is_float
from accelopt_profiling.nki.data.instruction import VECTOR, Instruction, Memory, Place, Trace
from accelopt_profiling.nki.data.layout import contiguous
from accelopt_profiling.nki.emulator import limits as rules
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.diagnostics import KernelFault
from accelopt_profiling.nki.emulator.loop_recorder import Notes
from accelopt_profiling.nki.emulator.selection import select
from accelopt_profiling.nki.emulator.tile import Tile

Mode = Literal["full", "trace"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_ours: dict[str, bool] = {}


class Chip(ABC):
    """One emulated NeuronCore.

    ``record`` keeps the trace; ``findings`` collects what is worth telling; a violation that makes going on
    pointless raises ``KernelFault``.
    """

    def __init__(self, mode: Mode = "full", record: bool = True, limits: rules.Limits | None = None) -> None:
        self.mode = mode
        self.full = mode == "full"
        self.record = record
        self.limits = limits or rules.Limits()
        self.begin(repeating=True)

    def begin(self, repeating: bool) -> None:
        """Begin a run, with nothing of an earlier one; ``repeating``: loops may be repeated from what was noted."""
        self.trace = Trace()
        self.findings: list[Finding] = []
        self._reported: set[tuple[str, int]] = set()
        self._places = 0
        self.issued = 0  # instructions so far
        self.checked: set[Any] = set()  # what was found to be allowed: kernels repeat themselves
        self.program: tuple[int, ...] = (0,)
        self.grid: tuple[int, ...] = (1,)
        self._shared: list[Tile] = []
        self._next_shared = 0
        self.arithmetic_of: Callable[..., Tile] | None = None
        self.work = Work()
        self.noted = Notes(repeating)
        self.version = ""  # of the dialect, where it has versions
        self.registers: dict[str, Any] = {}  # engine -> its accumulator registers, one per partition
        self.launched_on_a_grid = False
        self.tensor: type[Tile] = Tile  # what tensors look like in the dialect of the kernel

    # What the layers above add, and tiles rely on

    @abstractmethod
    def index_values(self, tile: Tile) -> Array | None: ...

    @abstractmethod
    def assign(self, target: Tile, value: Any) -> None: ...

    @abstractmethod
    def accumulate(self, target: Tile, value: Any) -> Tile: ...

    @abstractmethod
    def broadcast(self, tile: Tile, shape: Sequence[int]) -> Tile: ...

    @abstractmethod
    def arithmetic(self, name: str, *operands: Any) -> Tile: ...

    # Messages

    def line(self) -> int:
        """The 1-based line of the innermost frame outside this package: the user's own."""
        if self.noted.line:
            return self.noted.line
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            ours = _ours.get(name)
            if ours is None:
                ours = _ours[name] = os.path.abspath(name).startswith(_PACKAGE)
            if not ours:
                return frame.f_lineno
            frame = frame.f_back
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
        full: bool = False,
    ) -> Tile:
        """A new block of ``shape``: unwritten, or filled with ``fill`` (lazily: no values until it is read).

        ``full`` tells that an instruction writes all of it right away.
        """
        shape = tuple(shape)
        item = dtype.itemsize
        if memory is not Memory.HBM and (shape, item, memory) not in self.checked:
            rules.check_block(self, shape, item, memory)
            self.checked.add((shape, item, memory))
        place = self._place(memory, shape, item, name, line or self.line(), False)
        block = Block(place, dtype, None, full or fill is not None)
        if self.noted.loops:
            self.noted.events.append(block)
        tile = self.tensor(self, block, 0, block.dims)
        if fill is not None:
            block.fill = fill
            if memory is Memory.SBUF:
                instruction = self.emit("memset", (VECTOR,), tile)
                instruction.writes.append((place, tile.box()))
        return tile

    def shared(self, shape: Sequence[int], dtype: np.dtype[Any], name: str) -> Tile:
        """An output in HBM; the programs of one launch share it, by order of allocation."""
        self.noted.cannot_be_repeated()
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

    def another(self, block: Block) -> Block:
        """A new block like one that was made in an iteration, for another iteration."""
        old = block.place
        place = self._place(old.memory, old.shape, block.dtype.itemsize, old.name, old.line, False)
        made = Block(place, block.dtype, None, block.coverage is WRITTEN)
        made.fill = block.fill
        if self.noted.loops:
            self.noted.events.append(made)
        return made

    def argument(self, array: Array) -> Tile:
        """An input in HBM: the caller's own array, never written."""
        self.noted.cannot_be_repeated()
        place = self._place(Memory.HBM, array.shape, array.dtype.itemsize, "", 0, True)
        storage = np.ascontiguousarray(array) if self.full else None
        block = Block(place, array.dtype, storage, full=True)
        self.trace.input_bytes += array.nbytes
        return self.tensor(self, block, 0, block.dims)

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
        if self.full:
            self.work.do(final=True)
        else:
            return np.broadcast_to(np.zeros((), dtype=tile.dtype), tile.shape)
        return tile.array() if tile.covers_block() else tile.array().copy()

    def _poison(self, block: Block) -> None:
        """From here on, what nothing was written to holds NaN (4 for whole numbers), as in the SDK's simulator."""
        missing, value = block.coverage.missing(), np.nan if is_float(block.dtype) else 4

        def spoil() -> None:
            block.writable()[missing] = value

        self.work.steps.append(Step(spoil, ()))

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
        return tile.strided(0, contiguous(tuple(wanted)))

    def operand(self, value: Any, what: str = "operand") -> Tile:
        """A tile as an instruction reads it: at least two dimensions, partition first."""
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

    # Instructions

    def emit(self, opcode: str, engines: tuple[str, ...], shaped: Tile) -> Instruction:
        """Add an instruction whose cost follows the shape of ``shaped``."""
        shape = shaped.shape
        partitions = shape[0] if shape else 1
        instruction = Instruction(opcode, engines, self.line(), partitions, prod(shape[1:]))
        instruction.itemsize = shaped.block.dtype.itemsize
        self.issue(instruction)
        return instruction

    def issue(self, instruction: Instruction) -> None:
        """Add an instruction to the trace."""
        self.issued += 1
        instruction.number = self.issued
        if self.record:
            self.trace.instructions.append(instruction)
        if self.noted.loops:
            self.noted.events.append(instruction)
