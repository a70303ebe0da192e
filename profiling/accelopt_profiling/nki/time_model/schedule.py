"""A schedule of a trace: engines in program order, DMA queues, data dependencies, room on the chip.

Engines are in-order queues. A transfer is cut over all DMA queues, so the queues together are one resource; loads and
stores are issued by different rings and overtake each other, sharing the bandwidth.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from accelopt_profiling.nki.coverage import Box
from accelopt_profiling.nki.instruction import COMPUTE_ENGINES, DMA, TENSOR, Instruction
from accelopt_profiling.nki.time_model.costs import dma_ns, engine_ns
from accelopt_profiling.nki.time_model.hardware import Hardware
from accelopt_profiling.nki.time_model.residency import Placed, Residency, place


@dataclass
class Schedule:
    """When everything ends, how busy each engine was, and what each source line kept busy (times in ns)."""

    residency: Residency
    total: float = 0.0
    busy: dict[str, float] = field(default_factory=lambda: dict.fromkeys((*COMPUTE_ENGINES, DMA), 0.0))
    lines: dict[int, dict[str, float]] = field(default_factory=dict)  # line -> engine -> ns busy
    critical: dict[int, float] = field(default_factory=dict)  # line -> ns on the critical path
    waits: dict[str, float] = field(default_factory=dict)  # engine -> ns of the critical path it ran
    line_bytes: dict[int, int] = field(default_factory=dict)
    line_descriptors: dict[int, int] = field(default_factory=dict)
    read_bytes: int = 0
    write_bytes: int = 0
    instructions: dict[str, int] = field(default_factory=dict)


class _History:
    """The last writes to a tile and the reads since then: (box, when visible, position)."""

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.writes: list[tuple[Box | None, float, int]] = []
        self.reads: list[tuple[Box | None, float, int]] = []


@dataclass
class _Done:
    engine: str
    duration: float
    line: int
    visible: float
    cause: int


def schedule(instructions: list[Instruction], hardware: Hardware) -> Schedule:
    """Place the tiles, run the instructions through the machine's queues, and tell when they end."""
    result = Schedule(place(instructions, hardware))
    _Queues(hardware, result).run(result.residency.order)
    return result


class _Queues:
    def __init__(self, hardware: Hardware, result: Schedule) -> None:
        self.hardware, self.result = hardware, result
        self.free = dict.fromkeys((*COMPUTE_ENGINES, "load", "store"), 0.0)
        self.last = dict.fromkeys(self.free, -1)
        self.moved = 0.0  # work given to the DMA queues so far
        self.history: dict[Hashable, _History] = {}
        self.done: list[_Done] = []

    def run(self, order: list[Placed]) -> None:
        for placed in order:
            self._issue(placed)
        self._walk_back()

    def _issue(self, placed: Placed) -> None:
        instruction = placed.instruction
        ready, cause = self._ready(placed)
        if instruction.engines[0] == DMA:
            engine, duration, latency = DMA, dma_ns(instruction, self.hardware), self.hardware.dma_latency_ns
            queue = "load" if instruction.opcode in ("load", "reload") else "store"
            self._count_transfer(instruction, queue)
        else:
            engine, duration = self._choose(instruction, ready)
            queue, latency = engine, self.hardware.semaphore_ns
        start = max(self.free[queue], ready)
        if self.free[queue] >= ready:
            cause = self.last[queue]
        end = start + duration
        if engine == DMA:
            self.moved += duration
            end = max(end, self.moved)
        self.free[queue] = end
        position = len(self.done)
        self.last[queue] = position
        visible = end + latency
        self._remember(placed, visible, position)
        self.done.append(_Done(engine, duration, instruction.line, visible, cause))
        result = self.result
        result.busy[engine] += duration
        result.instructions[engine] = result.instructions.get(engine, 0) + 1
        on_line = result.lines.setdefault(instruction.line, {})
        on_line[engine] = on_line.get(engine, 0.0) + duration
        result.total = max(result.total, visible)

    def _choose(self, instruction: Instruction, ready: float) -> tuple[str, float]:
        """The engine that would finish first, of those the instruction may run on."""
        options = [(e, engine_ns(instruction, e, self.hardware)) for e in instruction.engines]
        if len(options) == 1:
            return options[0]
        return min(options, key=lambda option: max(self.free[option[0]], ready) + option[1])

    def _ready(self, placed: Placed) -> tuple[float, int]:
        """When the operands and the room are there, and which instruction that depends on."""
        ready, cause = 0.0, -1
        instruction = placed.instruction
        for position in placed.after:
            if position >= 0 and self.done[position].visible > ready:
                ready, cause = self.done[position].visible, position
        reads = [r for r in instruction.reads if not r[0].constant]
        for (_, box), name in zip(reads, placed.reads, strict=True):
            for seen, visible, position in self._of(name).writes:
                if visible > ready and _overlap(seen, box):
                    ready, cause = visible, position
        for (_, box), name in zip(instruction.writes, placed.writes, strict=False):
            if name is None:
                continue
            past = self._of(name)
            for seen, visible, position in (*past.writes, *past.reads):
                if visible > ready and _overlap(seen, box):
                    if instruction.accumulate and self.done[position].engine == TENSOR:
                        continue  # products that add up in PSUM follow each other without waiting
                    ready, cause = visible, position
        return ready, cause

    def _remember(self, placed: Placed, visible: float, position: int) -> None:
        instruction = placed.instruction
        reads = [r for r in instruction.reads if not r[0].constant]
        for (_, box), name in zip(reads, placed.reads, strict=True):
            past = self._of(name)
            past.reads = [r for r in past.reads if r[0] != box]  # a later read of the same place covers it
            past.reads.append((box, visible, position))
        if not instruction.writes:
            for name in placed.writes:  # a reload brings the whole tile back
                self._of(name).writes.append((None, visible, position))
        for (_, box), name in zip(instruction.writes, placed.writes, strict=False):
            if name is None:
                continue
            past = self._of(name)
            past.writes = [w for w in past.writes if w[0] is not None and not _inside(w[0], box)]
            past.writes.append((box, visible, position))
            past.reads = [r for r in past.reads if not _overlap(r[0], box)]

    def _of(self, name: Hashable) -> _History:
        found = self.history.get(name)
        if found is None:
            found = self.history[name] = _History()
        return found

    def _count_transfer(self, instruction: Instruction, queue: str) -> None:
        result, line = self.result, instruction.line
        result.line_bytes[line] = result.line_bytes.get(line, 0) + instruction.bytes
        result.line_descriptors[line] = result.line_descriptors.get(line, 0) + instruction.descriptors
        if queue == "load":
            result.read_bytes += instruction.bytes
        else:
            result.write_bytes += instruction.bytes

    def _walk_back(self) -> None:
        """Follow the causes from the last instruction to the first: what the time was spent on, line by line."""
        at = max(range(len(self.done)), key=lambda n: self.done[n].visible, default=-1)
        result = self.result
        while at >= 0:
            one = self.done[at]
            before = self.done[one.cause].visible if one.cause >= 0 else 0.0
            spent = max(one.visible - before, 0.0)
            result.critical[one.line] = result.critical.get(one.line, 0.0) + spent
            result.waits[one.engine] = result.waits.get(one.engine, 0.0) + spent
            at = one.cause


def _overlap(a: Box | None, b: Box | None) -> bool:
    if a is None or b is None:
        return True
    return all(x < w and z < y for (x, y), (z, w) in zip(a, b, strict=False))


def _inside(inner: Box, outer: Box) -> bool:
    return all(a >= c and b <= d for (a, b), (c, d) in zip(inner, outer, strict=False))
