"""A schedule of a program: engines, DMA queues, data dependencies, room on the chip.

Each engine of a core is a lane. A step starts when its operands are there (the end of what writes them, and a
semaphore's or a DMA's latency), when the room it needs is free, and when its lane is. Lanes are filled in program
order, but a step may use an idle gap that lies at most ``lookahead`` instructions back: compilers move instructions
that far, DMA queues overtake each other. A transfer is cut over all DMA queues, so these together are one lane.

Two cores of a launch have their own lanes and run side by side. What both need of HBM's bandwidth is halved, and at a
barrier each waits for all that the other did before.

Loops are followed until they advance by the same time in every iteration; the other iterations are copies of the last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
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
from accelopt_profiling.nki.time_model.compiler import operands_in_psum, share
from accelopt_profiling.nki.time_model.hardware import Compiler, Hardware
from accelopt_profiling.nki.time_model.loops import Part, find_loops
from accelopt_profiling.nki.time_model.placement import Residency, place
from accelopt_profiling.nki.time_model.step import Kinds, ScheduledStep, tell_versions_apart

#: Why a step did not start earlier: nothing held it, its operands, the room it writes to, or its own engine.
NOTHING, OPERAND, ROOM, QUEUE = range(4)

#: An iteration that differs from the one before by less than this share of its time is taken for the same.
_SAME = 0.002
#: A loop has settled when this many iterations in a row (or pairs, or fours of them) took the same time.
_PERIODS = (1, 2, 4)
_GAPS = 64


#: When each lane is free, and how long it has been busy.
_Ends = dict[str, tuple[float, float]]


@dataclass
class Schedule:
    """When everything ends, how busy each engine was, and what each source line kept busy (times in ns; of two
    ``cores`` the mean).

    ``start``, ``end``, ``cause`` (position of what was waited for, or -1) and ``why`` are per step of
    ``residency.order``. A step's result can be used some latency after ``end``. ``followed`` counts the steps that
    were scheduled one by one; the rest are iterations of loops that had settled.
    """

    residency: Residency
    total: float = 0.0
    cores: int = 1
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
    loops: list[Part] = field(default_factory=list)
    followed: int = 0


@dataclass
class Program:
    """A program ready to be scheduled: the compiler's output, its tiles placed, its loops found.

    It does not depend on what single instructions cost.
    """

    compiler: Compiler
    kinds: Kinds
    residency: Residency
    loops: list[Part]


@collection_paused()
def prepare(
    instructions: list[TracedInstruction], hardware: Hardware, compiler: Compiler | None = None
) -> Program:
    """Apply the compiler model to a trace; ``compiler`` defaults to that of the hardware's usual dialect."""
    compiler = compiler or hardware.compiler
    kinds = Kinds(compiler)
    steps = kinds.of(instructions)
    dropped: dict[int, int] = {}
    if compiler.rotates_overwritten:
        tell_versions_apart(steps)
    if compiler.psum_operands:
        steps = operands_in_psum(steps, kinds, hardware.limits.psum_bank_bytes)
    if compiler.shares_values:
        steps, dropped = share(steps, hardware.sbuf_usable)
    residency = place(steps, kinds, hardware, dropped)
    residency.reused_bytes = sum(dropped.values())
    return Program(compiler, kinds, residency, find_loops([step.key for step in residency.order]))


@collection_paused()
def schedule(program: Program, hardware: Hardware) -> Schedule:
    """Schedule a program on the engines and DMA queues."""
    cores = max((step.core for step in program.residency.order), default=0) + 1
    if cores > 1:
        hardware = replace(hardware, dma_gbps=min(hardware.dma_gbps, hardware.shared_gbps / cores))
    result = Schedule(program.residency, cores=cores, loops=program.loops)
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

    __slots__ = ("busy", "end", "gaps", "last", "used")

    def __init__(self) -> None:
        self.end, self.busy, self.last, self.used = 0.0, 0.0, -1, False
        self.gaps: list[tuple[float, float, int, int]] = []

    def take(self, ready: float, ns: float, position: int, lookahead: int) -> tuple[float, int]:
        """Return the start of a step that is ready at ``ready``, and the step before it on the lane, if it
        waited for it."""
        gaps = self.gaps
        self.used = True
        self.busy += ns
        if gaps:
            while gaps and gaps[0][2] < position - lookahead:
                del gaps[0]
            for at, (low, high, maker, behind) in enumerate(gaps):
                start = low if low > ready else ready
                if start + ns <= high:
                    del gaps[at]
                    if high - start - ns > 1.0:
                        gaps.insert(at, (start + ns, high, maker, position))
                    if start - low > 1.0:
                        gaps.insert(at, (low, start, maker, behind))
                    return start, behind if low > ready else -1
        before = self.last
        start, waited = (self.end, before) if self.end > ready else (ready, -1)
        if lookahead and start > self.end + 1.0:
            gaps.append((self.end, start, position, before))
            if len(gaps) > _GAPS:
                del gaps[0]
        self.end, self.last = start + ns, position
        return start, waited

    def shift(self, ns: float, steps: int) -> None:
        self.end += ns
        self.last += steps
        self.gaps = [
            (low + ns, high + ns, maker + steps, behind + steps) for low, high, maker, behind in self.gaps
        ]


class _Scheduler:
    def __init__(self, result: Schedule, hardware: Hardware, compiler: Compiler, costs: list[float]) -> None:
        self.result, self.hardware, self.costs = result, hardware, costs
        self.steps = result.residency.order
        self.predecessor = result.residency.predecessor
        self.lookahead, self.transfers_ahead = compiler.lookahead, compiler.transfers_ahead
        self.lanes = {step.lane: _Lane() for step in self.steps}
        self.waiting: list[int] = []  # the cores' steps at a barrier that not all have come to
        #: The step that was last at the last barrier that all came to, and when it is seen.
        self.barrier, self.barrier_over = -1, 0.0
        self.start, self.end, self.cause, self.why = result.start, result.end, result.cause, result.why
        self.seen: list[float] = []  # when a step's result can be used
        self.written: dict[BlockInfo, tuple[list[int], list[Box]]] = defaultdict(lambda: ([], []))
        self.read: dict[BlockInfo, tuple[list[int], list[Box]]] = defaultdict(lambda: ([], []))
        for position, step in enumerate(self.steps):
            for regions, uses in ((step.reads, self.read), (step.writes, self.written)):
                for where, box in regions:
                    positions, boxes = uses[where]
                    positions.append(position)
                    boxes.append(box)
        self.unread = {p for p in self.written if p.memory is MemorySpace.HBM and p not in self.read}

    def follow(self) -> None:
        """Schedule all steps."""
        self._parts(self.result.loops)
        self.result.total = max(self.seen, default=0.0)

    def _parts(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if part.body:
                self._loop(part)
            else:
                self._issue(len(self.seen))

    def _loop(self, loop: Part) -> None:
        size, at = loop.size // loop.count, 0
        ends: list[_Ends] = [self._ends()]
        used_before = {name for name, lane in self.lanes.items() if lane.used}
        for lane in self.lanes.values():
            lane.used = False
        while at < loop.count:
            self._parts(loop.body)
            at += 1
            ends.append(self._ends())
            for period in _PERIODS:
                repeats = (loop.count - at) // period
                if repeats and (advance := self._advance(ends, period)) is not None:
                    self._skip(size * period, repeats, advance)
                    at += repeats * period
                    ends = [self._ends()]
                    break
        for name in used_before:
            self.lanes[name].used = True

    def _ends(self) -> _Ends:
        return {name: (lane.end, lane.busy) for name, lane in self.lanes.items()}

    def _advance(self, ends: list[_Ends], period: int) -> float | None:
        """Return the time that every lane in use advanced by in each of the last two periods, if it is the
        same."""
        if len(ends) < 2 * period + 1:
            return None
        now, before, earlier = ends[-1], ends[-1 - period], ends[-1 - 2 * period]
        used = [name for name, lane in self.lanes.items() if lane.used]
        most = max(now[name][0] - before[name][0] for name in used)
        for name in used:
            last, past = now[name][0] - before[name][0], before[name][0] - earlier[name][0]
            if abs(last - most) > _SAME * most or abs(past - most) > _SAME * most:
                return None
            if last < (now[name][1] - before[name][1]) * (1 - _SAME):
                return None  # its work went to gaps before the loop
        return most

    def _skip(self, size: int, times: int, advance: float) -> None:
        """Append ``times`` copies of the last ``size`` steps, each ``advance`` ns later than the one before."""
        start, end, visible = self.start[-size:], self.end[-size:], self.seen[-size:]
        cause, why = self.cause[-size:], self.why[-size:]
        for n in range(1, times + 1):
            later, further = n * advance, n * size
            self.start += [t + later for t in start]
            self.end += [t + later for t in end]
            self.seen += [t + later for t in visible]
            self.cause += [c + further if c >= 0 else c for c in cause]
            self.why += why
        if self.barrier >= len(self.seen) - size * (times + 1):
            self.barrier += times * size
            self.barrier_over += times * advance
        for lane in self.lanes.values():
            if lane.used:
                lane.shift(times * advance, times * size)

    def _issue(self, position: int) -> None:
        step = self.steps[position]
        self.result.followed += 1
        ready, cause, why = self._ready(step, position)
        engine, ns = step.engine, self.costs[step.key]
        ahead = self.transfers_ahead if engine == DMA else self.lookahead
        start, waited = self.lanes[step.lane].take(ready, ns, position, ahead)
        if waited >= 0:
            cause, why = waited, QUEUE
        latency = self.hardware.dma_latency_ns if engine == DMA else self.hardware.semaphore_ns
        self.start.append(start)
        self.end.append(start + ns)
        self.seen.append(start + ns + latency)
        self.cause.append(cause)
        self.why.append(why)
        if step.opcode == BARRIER:
            self.waiting.append(position)
            if len(self.waiting) == self.result.cores:  # nothing that follows starts earlier
                self.barrier = max(self.waiting, key=self.seen.__getitem__)
                self.barrier_over = self.seen[self.barrier]
                self.waiting = []

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
            positions, boxes = self.written[where]
            at = bisect_left(positions, position) - 1
            while at >= 0:
                writer, region = positions[at], boxes[at]
                if _overlap(region, box):
                    if visible_at(writer) > ready:
                        ready, cause, why = visible_at(writer), writer, OPERAND
                    if _inside(box, region):
                        break
                at -= 1
        for where, box in step.writes:
            if where in self.unread:
                continue
            positions, boxes = self.written[where]
            at = bisect_left(positions, position) - 1
            covered = -1
            if at < 0:
                earlier = self.predecessor.get(where)
                if earlier is not None:
                    for user in self._last_users(earlier, position):
                        if visible_at(user) > ready:
                            ready, cause, why = visible_at(user), user, ROOM
            while at >= 0:
                writer, region = positions[at], boxes[at]
                if _overlap(region, box):
                    follows = step.accumulate and self.steps[writer].engine == TENSOR
                    if (
                        not follows and visible_at(writer) > ready
                    ):  # products that add up in PSUM follow without waiting
                        ready, cause, why = visible_at(writer), writer, ROOM
                    if _inside(box, region):
                        covered = writer
                        break
                at -= 1
            if where in self.read:
                positions, boxes = self.read[where]
                at = bisect_left(positions, position) - 1
                while at >= 0 and positions[at] > covered:
                    reader = positions[at]
                    if visible_at(reader) > ready and _overlap(boxes[at], box):
                        ready, cause, why = visible_at(reader), reader, ROOM
                    at -= 1
        return ready, cause, why

    def _seen_by(self, step: ScheduledStep) -> Callable[[int], float]:
        """Return when ``step`` can use what another step made: VectorE needs no semaphore for its own results."""
        if step.engine != VECTOR:
            return self.seen.__getitem__
        own = self.hardware.vector_result_ns
        return lambda n: self.end[n] + own if self.steps[n].lane == step.lane else self.seen[n]

    def _last_users(self, tile: BlockInfo, position: int) -> list[int]:
        users = [*self.written[tile][0][-2:], *(self.read[tile][0][-6:] if tile in self.read else ())]
        return [user for user in users if user < position]


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
