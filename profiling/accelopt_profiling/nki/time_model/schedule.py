"""A schedule of a program: engines, DMA queues, data dependencies, room on the chip.

Each engine of a core is a lane. A step starts when its operands are there (the end of what writes them, and a
semaphore's or a DMA's latency), when the room it needs is free, and when its lane is. Lanes are filled in program
order, but a step may use an idle gap that lies at most ``lookahead`` instructions back: compilers move instructions
that far, DMA queues overtake each other. A transfer is cut over all DMA queues, so these together are one lane.

Two cores of a launch have their own lanes and run side by side. What both need of HBM's bandwidth is halved, and at a
barrier each waits for all that the other did before.

TensorE runs at half its clock while little of it is used (``_Clock``).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from accelopt_profiling.nki.compute.process_settings import collection_paused
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.instruction import (
    BARRIER,
    COMPUTE_ENGINES,
    DMA,
    TENSOR,
    VECTOR,
    BlockInfo,
    TracedInstruction,
)
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.compiler import operands_in_psum, share, transposed_loads
from accelopt_profiling.nki.time_model.hardware import Compiler, Hardware
from accelopt_profiling.nki.time_model.placement import Residency, place
from accelopt_profiling.nki.time_model.step import Kinds, ScheduledStep, tell_versions_apart

#: Why a step did not start earlier: nothing held it, its operands, the room it writes to, or its own engine.
NOTHING, OPERAND, ROOM, QUEUE = range(4)

_GAPS = 64


@dataclass
class Schedule:
    """When everything ends, how busy each engine was, and what each source line rest_gaps busy (times in ns; of two
    ``cores`` the mean).

    ``start``, ``end``, ``cause`` (position of what was waited for, or -1) and ``why`` are per step of
    ``residency.order``. A step's result can be used some latency after ``end``. ``half_clock_ns`` is what TensorE's
    work took longer for being done at half its clock.
    """

    residency: Residency
    total: float = 0.0
    cores: int = 1
    half_clock_ns: float = 0.0
    busy: dict[str, float] = field(default_factory=lambda: dict.fromkeys((*COMPUTE_ENGINES, DMA), 0.0))
    lines: dict[int, dict[str, float]] = field(default_factory=dict)  # line -> engine -> ns busy
    line_bytes: dict[int, int] = field(default_factory=dict)
    line_descriptors: dict[int, int] = field(default_factory=dict)
    read_bytes: int = 0
    write_bytes: int = 0
    instructions: dict[str, int] = field(default_factory=dict)
    start: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    cause: list[int] = field(default_factory=list)
    why: list[int] = field(default_factory=list)


@dataclass
class Program:
    """A program ready to be scheduled: the compiler's output, its tiles placed.

    It does not depend on what single instructions cost.
    """

    compiler: Compiler
    kinds: Kinds
    residency: Residency


@collection_paused()
def prepare(
    instructions: list[TracedInstruction], hardware: Hardware, compiler: Compiler | None = None
) -> Program:
    """Apply the compiler model to a trace; ``compiler`` defaults to that of the hardware's usual dialect."""
    compiler = compiler or hardware.compiler
    kinds = Kinds(compiler)
    if compiler.transposes_loads:
        instructions = transposed_loads(instructions, hardware.limits.partitions)
    steps = kinds.of(instructions)
    dropped: dict[int, int] = {}
    if compiler.rotates_overwritten:
        tell_versions_apart(steps)
    if compiler.psum_operands:
        steps = operands_in_psum(steps, kinds, hardware.limits.psum_bank_bytes)
    if compiler.shares_values:
        steps, dropped = share(steps, hardware.sbuf_usable, compiler.shares_across_loops)
    residency = place(steps, kinds, hardware, dropped)
    residency.reused_bytes = sum(dropped.values())
    return Program(compiler, kinds, residency)


@collection_paused()
def schedule(program: Program, hardware: Hardware) -> Schedule:
    """Schedule a program on the engines and DMA queues."""
    cores = max((step.core for step in program.residency.order), default=0) + 1
    if cores > 1:
        hardware = replace(hardware, dma_gbps=min(hardware.dma_gbps, hardware.shared_gbps / cores))
    result = Schedule(program.residency, cores=cores)
    costs = program.kinds.costs(hardware)
    _count(result, costs)
    _Scheduler(result, hardware, program.compiler, costs).follow()
    return result


def _count(result: Schedule, costs: list[float]) -> None:
    counts: dict[int, int] = defaultdict(int)
    first: dict[int, ScheduledStep] = {}
    for step in result.residency.order:
        counts[step.key] += 1
        first.setdefault(step.key, step)
    for key, count in counts.items():
        step = first[key]
        line, ns = step.line, costs[key] * count / result.cores
        result.busy[step.engine] += ns
        result.instructions[step.engine] = result.instructions.get(step.engine, 0) + count
        on_line = result.lines.setdefault(line, {})
        on_line[step.engine] = on_line.get(step.engine, 0.0) + ns
        if step.engine == DMA:
            size, pieces = step.bytes * count, step.descriptors * count
            result.line_bytes[line] = result.line_bytes.get(line, 0) + size
            result.line_descriptors[line] = result.line_descriptors.get(line, 0) + pieces
            if step.loads:
                result.read_bytes += size
            else:
                result.write_bytes += size


class _Lane:
    """One engine: when it is free, and the gaps that can still be filled (from, to, made at, after which step)."""

    __slots__ = ("busy", "end", "gaps", "last")

    def __init__(self) -> None:
        self.end, self.busy, self.last = 0.0, 0.0, -1
        self.gaps: list[tuple[float, float, int, int]] = []

    def take(
        self, ready: float, ns: float, position: int, lookahead: int, parts: bool
    ) -> tuple[float, float, int]:
        """Return start and end of a step that is ready at ``ready``, and the step before it if it waited for that.

        A step runs in a gap that fits it or, where it may be cut into ``parts``, in all gaps and the time behind them.
        """
        while self.gaps and self.gaps[0][2] < position - lookahead:
            del self.gaps[0]
        self.busy += ns
        rest_gaps: list[tuple[float, float, int, int]] = []
        rest, first, end, waited = ns, -1.0, ready, -1
        for n, gap in enumerate(self.gaps):
            low, high, maker, behind = gap
            start = low if low > ready else ready
            if high - start < (1.0 if parts else rest):
                rest_gaps.append(gap)
                continue
            part = min(rest, high - start)
            end = start + part
            rest -= part
            if first < 0.0:
                first, waited = start, behind if low > ready else -1
            if start - low > 1.0:
                rest_gaps.append((low, start, maker, behind))
            if high - end > 1.0:
                rest_gaps.append((end, high, maker, position))
            if rest <= 0.0:
                rest_gaps += self.gaps[n + 1 :]
                break
        if rest > 0.0 or first < 0.0:
            start = self.end if self.end > ready else ready
            if first < 0.0:
                first, waited = start, self.last if self.end > ready else -1
            if lookahead and start > self.end + 1.0:
                rest_gaps.append((self.end, start, position, self.last))
            end = self.end = start + rest
            self.last = position
        self.gaps = rest_gaps[-_GAPS:]
        return first, end, waited


class _Clock:
    """TensorE's clock: full while the rows in use, over the last ``clock_window_ns``, are ``full_clock_use`` of all or
    more; else half. What runs at half the clock counts half."""

    __slots__ = ("_full", "_least", "_recent", "_used", "_window", "lost")

    def __init__(self, hardware: Hardware) -> None:
        self._window = hardware.clock_window_ns
        self._least = hardware.full_clock_use * self._window
        self._recent: deque[tuple[float, float, float]] = deque()
        self._used = 0.0
        self._full = False
        self.lost = 0.0

    def factor(self, at: float) -> float:
        """Return what a time at full clock is multiplied by for what starts at ``at``."""
        recent, begin = self._recent, at - self._window
        while recent and recent[0][1] <= begin:
            start, end, use = recent.popleft()
            self._used -= (end - start) * use
        before = (begin - recent[0][0]) * recent[0][2] if recent and recent[0][0] < begin else 0.0
        self._full = self._used - before >= self._least
        return 1.0 if self._full else 2.0

    def ran(self, start: float, end: float, rows: float, ns: float) -> None:
        """Note a step that used a share of the rows and takes ``ns`` at full clock."""
        use = rows if self._full else rows / 2
        at = len(self._recent)
        while at and self._recent[at - 1][1] > end:  # it ran in a gap
            at -= 1
        self._recent.insert(at, (start, end, use))
        self._used += (end - start) * use
        self.lost += end - start - ns


class _PartUsers:
    """A part of a tile: the last step that wrote it, and of each lane the reader since then that ends last."""

    __slots__ = ("box", "readers", "writer")

    def __init__(self, box: Box) -> None:
        self.box, self.writer = box, -1
        self.readers: dict[str, int] = {}


class _TileUsers:
    """The parts of a tile that steps name, and for each those that overlap it."""

    __slots__ = ("_near", "parts", "written")

    def __init__(self) -> None:
        self.parts: dict[Box, _PartUsers] = {}
        self._near: dict[Box, list[_PartUsers]] = {}
        self.written = False

    def near(self, box: Box) -> list[_PartUsers]:
        """Return the parts that overlap ``box``, itself first."""
        near = self._near.get(box)
        if near is None:
            own = _PartUsers(box)
            near = [own, *(part for part in self.parts.values() if _overlap(part.box, box))]
            for part in near[1:]:
                self._near[part.box].append(own)
            self.parts[box], self._near[box] = own, near
        return near


class _Scheduler:
    def __init__(self, result: Schedule, hardware: Hardware, compiler: Compiler, costs: list[float]) -> None:
        self.result, self.hardware, self.costs = result, hardware, costs
        self.steps = result.residency.order
        self.predecessor = result.residency.predecessor
        self.lookahead, self.transfers_ahead = compiler.lookahead, compiler.transfers_ahead
        self.clocks: dict[str, _Clock] = defaultdict(lambda: _Clock(hardware))
        self.lanes = {step.lane: _Lane() for step in self.steps}
        self.waiting: list[int] = []  # the cores' steps at a barrier that not all have come to
        #: The step that was last at the last barrier that all came to, and when it is seen.
        self.barrier, self.barrier_over = -1, 0.0
        self.start, self.end, self.cause, self.why = result.start, result.end, result.cause, result.why
        self.seen: list[float] = []  # when a step's result can be used
        self.tiles: dict[BlockInfo, _TileUsers] = defaultdict(_TileUsers)
        read = {block for step in self.steps for block, _ in step.reads}
        written = {block for step in self.steps for block, _ in step.writes}
        self.unread = {block for block in written - read if block.memory is MemorySpace.HBM}
        self.written = written - self.unread

    def follow(self) -> None:
        """Schedule all steps."""
        for position in range(len(self.steps)):
            self._issue(position)
        self.result.total = max(self.seen, default=0.0)
        self.result.half_clock_ns = sum(clock.lost for clock in self.clocks.values()) / self.result.cores

    def _issue(self, position: int) -> None:
        step = self.steps[position]
        ready, cause, why = self._ready(step, position)
        engine, ns, lane = step.engine, self.costs[step.key], self.lanes[step.lane]
        ahead = self.transfers_ahead if engine == DMA else self.lookahead
        if engine == TENSOR and self.hardware.full_clock_use:
            clock = self.clocks[step.lane]
            ns *= clock.factor(max(lane.end, ready))
            start, end, waited = lane.take(ready, ns, position, ahead, parts=False)
            clock.ran(start, end, self._rows(step), self.costs[step.key])
        else:
            start, end, waited = lane.take(ready, ns, position, ahead, parts=engine == DMA)
        if waited >= 0:
            cause, why = waited, QUEUE
        latency = self.hardware.dma_latency_ns if engine == DMA else self.hardware.semaphore_ns
        self.start.append(start)
        self.end.append(end)
        self.seen.append(end + latency)
        self.cause.append(cause)
        self.why.append(why)
        self._note(step, position)
        if step.opcode == BARRIER:
            self.waiting.append(position)
            if len(self.waiting) == self.result.cores:  # nothing that follows starts earlier
                self.barrier = max(self.waiting, key=self.seen.__getitem__)
                self.barrier_over = self.seen[self.barrier]
                self.waiting = []

    def _rows(self, step: ScheduledStep) -> float:
        """Return the share of TensorE's rows that a step uses."""
        i = step.instruction
        return 1.0 if i is None else i.partitions / self.hardware.limits.partitions

    def _ready(self, step: ScheduledStep, position: int) -> tuple[float, int, int]:
        """When the operands and the room are there, and which step that depends on."""
        visible_at = self._seen_by(step)
        ready, cause, why = self.barrier_over, self.barrier, NOTHING if self.barrier < 0 else OPERAND
        if step.opcode == BARRIER:
            mine = [n for n in range(position) if self.steps[n].core == step.core]
            last = max(mine, key=self.seen.__getitem__, default=-1)
            return (self.seen[last], last, OPERAND) if mine else (ready, cause, why)
        if step.after >= 0:
            ready, cause, why = visible_at(step.after), step.after, ROOM
        for where, box in step.reads:
            if where not in self.written:
                continue
            for part in self.tiles[where].near(box):
                if part.writer >= 0 and visible_at(part.writer) > ready:
                    ready, cause, why = visible_at(part.writer), part.writer, OPERAND
        for where, box in step.writes:
            if where in self.unread:
                continue
            tile = self.tiles[where]
            users = [reader for part in tile.near(box) for reader in part.readers.values()]
            for part in tile.near(box):
                # products that add up in PSUM follow without waiting
                if part.writer >= 0 and not (step.accumulate and self.steps[part.writer].engine == TENSOR):
                    users.append(part.writer)
            if not tile.written and (earlier := self.predecessor.get(where)) is not None:
                for part in self.tiles[earlier].parts.values():
                    users += [*part.readers.values(), *([part.writer] if part.writer >= 0 else ())]
            for user in users:
                if visible_at(user) > ready:
                    ready, cause, why = visible_at(user), user, ROOM
        return ready, cause, why

    def _note(self, step: ScheduledStep, position: int) -> None:
        """Keep what later steps wait for: what a step overwrites waited for all that used it before."""
        for where, box in step.reads:
            if where in self.written:
                readers = self.tiles[where].near(box)[0].readers
                if self.end[readers.get(step.lane, position)] <= self.end[position]:
                    readers[step.lane] = position
        for where, box in step.writes:
            if where in self.unread:
                continue
            tile = self.tiles[where]
            tile.written = True
            for part in tile.near(box):
                if _inside(part.box, box):
                    part.writer = -1
                    part.readers.clear()
            tile.near(box)[0].writer = position

    def _seen_by(self, step: ScheduledStep) -> Callable[[int], float]:
        """Return when ``step`` can use what another step made: VectorE needs no semaphore for its own results."""
        if step.engine != VECTOR:
            return self.seen.__getitem__
        own = self.hardware.vector_result_ns
        return lambda n: self.end[n] + own if self.steps[n].lane == step.lane else self.seen[n]


def _overlap(a: Box, b: Box) -> bool:
    for (low, high), (other_low, other_high) in zip(a, b, strict=False):
        if low >= other_high or other_low >= high:
            return False
    return True


def _inside(inner: Box, outer: Box) -> bool:
    for (low, high), (outer_low, outer_high) in zip(inner, outer, strict=False):
        if low < outer_low or high > outer_high:
            return False
    return True
