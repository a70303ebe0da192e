"""Explains a schedule's time: the critical path, and the waits of an engine with their causes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from accelopt_profiling.nki.data.instruction import DMA
from accelopt_profiling.nki.time_model.schedule import OPERAND, QUEUE, ROOM, Schedule

#: Parts of the critical path that no engine runs: the time from an end until the result can be used.
TRANSFER_LATENCY, SEMAPHORE = "DMA latency", "semaphore"


@dataclass(frozen=True)
class Wait:
    """``ns`` in which ``engine`` stood still in front of ``line`` until ``cause_line`` was over.

    ``why`` is "operand" (it reads what the other wrote) or "room" (it writes where the other still reads);
    ``cause_engine`` ran the other.
    """

    engine: str
    line: int
    cause_engine: str
    cause_line: int
    why: str
    ns: float


@dataclass(frozen=True)
class Path:
    """The critical path's ns by what they were spent on (engines, DMA, latencies) and by source line."""

    on: dict[str, float]
    lines: dict[int, float]


def critical_path(plan: Schedule, latency: dict[str, float]) -> Path:
    """Follow the causes from the last step to the first. ``latency``: ns until a result is seen, by engine.

    The values of ``on`` and those of ``lines`` each sum up to the schedule's total.
    """
    on: dict[str, float] = defaultdict(float)
    lines: dict[int, float] = defaultdict(float)
    order, start, end, cause, why = plan.residency.order, plan.start, plan.end, plan.cause, plan.why
    at = max(range(len(end)), key=lambda n: end[n] + latency[order[n].engine], default=-1)
    if at >= 0:
        _late(on, lines, order[at].engine, order[at].line, plan.total - end[at])
    while at >= 0:
        step, before = order[at], cause[at]
        begun = start[at]
        on[step.engine] += end[at] - begun
        lines[step.line] += end[at] - begun
        if before >= 0 and why[at] != QUEUE:
            _late(on, lines, order[before].engine, order[before].line, begun - end[before])
        elif before < 0 and begun > 0.0:
            on["start"] += begun
            lines[step.line] += begun
        at = before
    return Path(dict(on), dict(lines))


def _late(on: dict[str, float], lines: dict[int, float], engine: str, line: int, ns: float) -> None:
    on[TRANSFER_LATENCY if engine == DMA else SEMAPHORE] += ns
    lines[line] += ns


def waits(plan: Schedule, engine: str) -> list[Wait]:
    """Return the waits of ``engine``, longest first."""
    order = plan.residency.order
    mine = sorted((n for n, step in enumerate(order) if step.engine == engine), key=plan.start.__getitem__)
    free = 0.0
    idle_ns: dict[tuple[int, str, int, str], float] = defaultdict(float)
    for n in mine:
        idle = plan.start[n] - free
        cause, why = plan.cause[n], plan.why[n]
        if idle > 0.0 and cause >= 0 and why in (OPERAND, ROOM):
            other = order[cause]
            idle_ns[order[n].line, other.engine, other.line, "room" if why == ROOM else "operand"] += idle
        free = max(free, plan.end[n])
    return sorted(
        (Wait(engine, line, by, cause_line, why, ns) for (line, by, cause_line, why), ns in idle_ns.items()),
        key=lambda wait: -wait.ns,
    )
