"""A schedule of a trace: engines in program order, DMA queues, data dependencies, room in SBUF."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_profiling.nki.coverage import Box
from accelopt_profiling.nki.instruction import COMPUTE_ENGINES, DMA, Instruction, Memory, Place
from accelopt_profiling.nki.time_model.costs import dma_ns, engine_ns
from accelopt_profiling.nki.time_model.hardware import Hardware


@dataclass
class Schedule:
    """When everything ends, how busy each engine was, and what each source line kept busy (all in ns)."""

    total: float = 0.0
    busy: dict[str, float] = field(default_factory=dict)
    lines: dict[int, dict[str, float]] = field(default_factory=dict)
    critical: dict[int, float] = field(default_factory=dict)  # line -> ns on the critical path
    critical_engine: dict[str, float] = field(default_factory=dict)
    line_bytes: dict[int, int] = field(default_factory=dict)
    line_descriptors: dict[int, int] = field(default_factory=dict)
    read_bytes: int = 0
    write_bytes: int = 0
    instructions: dict[str, int] = field(default_factory=dict)


def overlap(a: Box, b: Box) -> bool:
    return all(x < w and z < y for (x, y), (z, w) in zip(a, b, strict=False))


class _History:
    """The last writes to a place and the reads since: (box, end, index of the instruction)."""

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.writes: list[tuple[Box, float, int]] = []
        self.reads: list[tuple[Box, float, int]] = []


def schedule(instructions: list[Instruction], hardware: Hardware) -> Schedule:
    """Run the instructions through the machine's queues and return when they end."""
    result = Schedule(busy=dict.fromkeys((*COMPUTE_ENGINES, DMA), 0.0))
    free: dict[str, float] = dict.fromkeys((*COMPUTE_ENGINES, "load", "store"), 0.0)
    moved = 0.0  # work given to the DMA queues so far: loads and stores overtake each other but share the bandwidth
    last_on: dict[str, int] = dict.fromkeys(free, -1)
    history: dict[int, _History] = {}
    cause: list[int] = []  # the instruction that each one waited for
    took: list[tuple[str, float, int, float]] = []  # engine, duration, line, end
    for number, i in enumerate(instructions):
        ready, because = 0.0, -1
        for place, box in i.reads:
            if place.constant:
                continue
            for seen, end, who in _of(history, place).writes:
                if end > ready and overlap(seen, box):
                    ready, because = end, who
        for place, box in i.writes:
            past = _of(history, place)
            for seen, end, who in (*past.reads, *past.writes):
                if end > ready and overlap(seen, box) and not (i.accumulate and took[who][0] == "TensorE"):
                    ready, because = end, who
        if i.engines[0] == DMA:
            engine, duration = DMA, dma_ns(i.bytes, i.descriptors, hardware)
            latency = hardware.dma_latency_ns
            queue = "load" if i.opcode == "load" else "store"
            result.line_bytes[i.line] = result.line_bytes.get(i.line, 0) + i.bytes
            result.line_descriptors[i.line] = result.line_descriptors.get(i.line, 0) + i.descriptors
            if i.opcode == "load":
                result.read_bytes += i.bytes
            else:
                result.write_bytes += i.bytes
        else:
            engine, duration = min(
                ((e, engine_ns(i, e, hardware)) for e in i.engines),
                key=lambda pair: max(free[pair[0]], ready) + pair[1],
            )
            latency, queue = hardware.semaphore_ns, engine
        start = max(free[queue], ready)
        if free[queue] >= ready:
            because = last_on[queue]
        end = start + duration
        if engine == DMA:
            moved += duration
            end = max(end, moved)
        free[queue] = end
        last_on[queue] = number
        visible = end + latency
        for place, box in i.reads:
            if not place.constant:
                _of(history, place).reads.append((box, visible, number))
        for place, box in i.writes:
            past = _of(history, place)
            past.writes = [w for w in past.writes if not _inside(w[0], box)]
            past.writes.append((box, visible, number))
            past.reads = [r for r in past.reads if not overlap(r[0], box)]
        cause.append(because)
        took.append((engine, duration, i.line, visible))
        result.busy[engine] += duration
        result.instructions[engine] = result.instructions.get(engine, 0) + 1
        on_line = result.lines.setdefault(i.line, {})
        on_line[engine] = on_line.get(engine, 0.0) + duration
        result.total = max(result.total, visible)
    _critical_path(result, cause, took)
    return result


def _of(history: dict[int, _History], place: Place) -> _History:
    found = history.get(place.ident)
    if found is None:
        found = history[place.ident] = _History()
    return found


def _inside(inner: Box, outer: Box) -> bool:
    return all(a >= c and b <= d for (a, b), (c, d) in zip(inner, outer, strict=False))


def _critical_path(result: Schedule, cause: list[int], took: list[tuple[str, float, int, float]]) -> None:
    at = max(range(len(took)), key=lambda n: took[n][3], default=-1)
    while at >= 0:
        engine, duration, line, end = took[at]
        before = took[cause[at]][3] if cause[at] >= 0 else 0.0
        share = max(duration, end - before) if cause[at] >= 0 else end
        result.critical[line] = result.critical.get(line, 0.0) + min(share, end)
        result.critical_engine[engine] = result.critical_engine.get(engine, 0.0) + duration
        at = cause[at]


__all__ = ["Memory", "Schedule", "schedule"]
