"""The emulated NeuronCore that kernels run on, composed of its parts, and the one that is running.

Two modes over the same code: "full" computes values, "trace" keeps shapes, engines, bytes and dependencies only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import numpy as np

from accelopt_profiling.measurement import Finding
from accelopt_profiling.nki.compute.deferred import DeferredSteps
from accelopt_profiling.nki.compute.loop_order import LoopOrder
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.dtypes import as_dtype, is_float
from accelopt_profiling.nki.data.instruction import Trace
from accelopt_profiling.nki.data.memory_space import CoreLimits
from accelopt_profiling.nki.emulator.assignment import AssigningExecutor
from accelopt_profiling.nki.emulator.bit_views import renew
from accelopt_profiling.nki.emulator.diagnostics import Diagnostics, KernelFaultError
from accelopt_profiling.nki.emulator.hardware_rules import HardwareRules
from accelopt_profiling.nki.emulator.instruction_stream import InstructionStream
from accelopt_profiling.nki.emulator.loop_recorder import LoopRecorder
from accelopt_profiling.nki.emulator.memory import DeviceMemory
from accelopt_profiling.nki.emulator.program_group import ProgramGroup
from accelopt_profiling.nki.emulator.selection import select
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.emulator.transfers import Transfers

Mode = Literal["full", "trace"]


@dataclass(frozen=True)
class LaunchArgument:
    """A tensor that a launch was given: the emulator's, and the caller's array."""

    tile: Tile
    array: Array
    writable: bool


class Machine(AssigningExecutor):
    """One emulated NeuronCore.

    It executes instructions and assignments itself; its parts do the rest: ``memory`` allocates, ``transfers`` moves
    data by DMA, ``rules`` and ``diagnostics`` check and report, ``stream`` issues instructions into the ``trace``,
    ``deferred`` computes, ``recorder`` records loops. What tiles ask of it is in ``TileOperations``.
    """

    def __init__(
        self,
        mode: Mode = "full",
        record: bool = True,
        limits: CoreLimits | None = None,
        order: int | None = None,
        most: int = 0,
    ) -> None:
        """``record`` keeps the instructions of the trace, of which there are at most ``most`` where that is not 0.

        ``order`` draws another order of the iterations of loops that promise to take any.
        """
        self.mode, self.most = mode, most
        self.record = record
        self.limits = limits or CoreLimits()
        self.order = order
        self.free_loops = False  # whether there was such a loop
        self.results: list[Array] | None = (
            None  # copies of what the launch returned or wrote, where they are kept
        )
        self.answers: dict[Any, Any] | None = (
            None  # what launches return without being made again, by what they were of
        )
        self.flags: set[str] = set()  # the launch's arguments that are True or False
        self.turned_flags: frozenset[str] = frozenset()  # those that are turned into the other value
        self.begin(replaying=True)

    def begin(self, replaying: bool) -> None:
        """Begin a run, with nothing of an earlier one. ``replaying``: loops may be replayed from one iteration."""
        self.full = self.mode == "full"
        self.trace = Trace()
        self.diagnostics = Diagnostics()
        self.recorder = LoopRecorder(self.diagnostics, replaying and self.order is None)
        self.rules = HardwareRules(self.limits, self.diagnostics)
        self.stream = InstructionStream(self.trace, self.record, self.diagnostics, self.recorder, self.most)
        self.deferred = DeferredSteps(None if self.order is None or not self.full else LoopOrder(self.order))
        self.memory = DeviceMemory(
            self, self.full, self.trace, self.rules, self.diagnostics, self.recorder, self.stream, self.deferred,
        )  # fmt: skip
        self.transfers = Transfers(self)
        self.arguments: list[LaunchArgument] = []
        self.program: tuple[int, ...] = (0,)
        self.grid: tuple[int, ...] = (1,)
        self.launched_on_a_grid = False
        self.ordered = 0  # of how many regions that keep the order of instructions the kernel is inside
        self.group: ProgramGroup | None = None  # of two cores that may wait for one another
        self.random_states: dict[
            str, Tile
        ] = {}  # engine -> the state of its random numbers, where it drew any
        self.registers: dict[str, Any] = {}  # engine -> its accumulator registers, one per partition
        self.version = ""  # of the dialect, where it has versions
        self.device_loops: tuple[int, ...] = ()  # those of the device that are running, by number
        self.loop_count = 0
        # of the dialect: what Python's operators on tiles mean, and what allocates tensors
        self.operators: Callable[..., Tile] = _no_dialect
        self.create: Callable[..., Any] = _no_dialect

    # For a launch

    @property
    def findings(self) -> list[Finding]:
        """The findings of this run."""
        return self.diagnostics.findings

    def run_programs(self, grid: tuple[int, ...], program: Callable[[], Any]) -> Any:
        """Run a launch over ``grid``, one program after another, and return what the last one returned. Two programs of
        today's dialect are two cores, which may wait for one another. Nothing else puts programs in an order.
        """
        self.grid = grid
        programs = list(itertools.product(*(range(n) for n in grid)))
        numbers = range(len(programs))
        if self.version and len(programs) == 2:
            turns = self._between_barriers(numbers)

            def enter(at: int, own: Any) -> None:
                next(turns)
                self._enter(programs[at], own)

            self.group = ProgramGroup(2, enter, self._leave)
            try:
                return self.group.run(program)
            finally:
                turns.close()
        result: Any = None
        for at in self.in_any_order(numbers) or numbers:
            self._enter(programs[at], None)
            result = program()
        return result

    def _between_barriers(self, numbers: range) -> Generator[int]:
        """Yield for each turn of a program; they may take any order between one meeting of all and the next."""
        while True:
            yield from self.in_any_order(numbers) or numbers

    def _enter(self, program: tuple[int, ...], own: Any) -> None:
        """Start a program, or go on with one that waited, where ``own`` is what ``_leave`` returned."""
        self.program = program
        self.stream.core = self.group.running if self.group is not None else 0
        if own is None:
            self.memory.begin_program(first=not any(program))
            own = (self.memory.next_shared, {}, [])
        self.memory.next_shared, self.registers, self.recorder.loops = own

    def _leave(self) -> Any:
        """Return what belongs to the running program alone."""
        return self.memory.next_shared, self.registers, self.recorder.loops

    def argument(self, array: Array, writable: bool = False) -> Tile:
        """Return an input in HBM: the caller's own array, which is written only where ``writable``."""
        tile = self.memory.argument(array, writable)
        self.arguments.append(LaunchArgument(tile, array, writable))
        return tile

    def is_shared(self, tile: Tile) -> bool:
        """Return whether all programs of the launch have the tensor: one in shared HBM, or an argument."""
        return tile.block.info.shared or any(a.tile.block is tile.block for a in self.arguments)

    def output(self, tile: Tile) -> Array:
        """Return the values of a returned tensor as a plain array."""
        renew(self, tile.block)
        return self.memory.output(tile)

    def judge_unwritten_reads(self, results: Sequence[Array]) -> None:
        """Say of memory that was read before it was written that no result depends on it, where none holds the NaN that
        stood there."""
        if self.mode != "full" or not results or not all(is_float(r.dtype) for r in results):
            return
        read = [f for f in self.findings if f.code == "uninitialised-read"]
        if read and not any(np.isnan(r).any() for r in results):
            reached = "It held NaN, and none reached a result."
            self.findings[:] = [
                replace(f, severity="warning", message=f"{f.message} {reached}") if f in read else f
                for f in self.findings
            ]

    @contextmanager
    def device_loop(self) -> Iterator[None]:
        """Run a loop of the device in the body."""
        outside = self.device_loops
        self.loop_count += 1
        self.device_loops = (*outside, self.loop_count)
        try:
            yield
        finally:
            self.device_loops = outside

    def in_any_order(self, numbers: range) -> Iterable[int] | None:
        """Return the counters of a loop that promises to take any order, where it is to get another one; else
        None."""
        self.free_loops = self.free_loops or len(numbers) > 1
        order = self.deferred.order
        return None if order is None else order.iterations(numbers, lambda: self.deferred.steps)

    # For tiles

    select = staticmethod(select)

    def reshape(self, tile: Tile, shape: Sequence[int]) -> Tile:
        """Return the same elements in another shape, without moving them."""
        return self.memory.reshape(tile, shape)

    def reinterpret(self, tile: Tile, dtype: Any) -> Tile:
        """Return the bits of a tile as another type."""
        return self.memory.reinterpret(tile, as_dtype(dtype))

    def arithmetic(self, name: str, *operands: Any) -> Tile:
        """Return Python's operators on tiles, as the dialect defines them."""
        return self.operators(name, *operands)


def _no_dialect(*unused: Any) -> NoReturn:
    raise KernelFaultError("unsupported", "Without a dialect there are neither tensors nor operators.", 0)


_current: list[Machine] = []


def current() -> Machine:
    """Return the machine of the emulation under way.

    Raises:
        KernelFaultError: there is none: a kernel's body was called outside ``nki.jit``.
    """
    if not _current:
        raise KernelFaultError(
            "unsupported", "NKI functions work inside a kernel only; call it through @nki.jit.", 0
        )
    return _current[-1]


_emulated: list[CoreLimits] = []


@contextmanager
def emulating(core: CoreLimits) -> Iterator[None]:
    """Make ``core`` the one that code outside of kernels asks about, such as the top level of a kernel file."""
    _emulated.append(core)
    try:
        yield
    finally:
        _emulated.pop()


def limits() -> CoreLimits:
    """Return the sizes of the core under emulation: of the running machine, or of what is to run."""
    if _current:
        return _current[-1].limits
    return _emulated[-1] if _emulated else CoreLimits()


def running_machine() -> Machine | None:
    """Return the machine of the emulation under way; None where there is none."""
    return _current[-1] if _current else None


@contextmanager
def running(machine: Machine) -> Iterator[Machine]:
    """Make ``machine`` the one that the front end's functions act on."""
    _current.append(machine)
    try:
        yield machine
    finally:
        _current.pop()
