"""A schedule as a timeline: what a trace viewer or a picture shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accelopt_profiling.nki.data.instruction import BARRIER, COMPUTE_ENGINES, DMA
from accelopt_profiling.nki.time_model.schedule import OPERAND, QUEUE, ROOM, Schedule
from accelopt_profiling.timeline import Spans, Timeline

#: Spans are cut off here: a viewer takes more, a frame of the worker's protocol should not.
MOST_SPANS = 50_000
_PARTS = 160
_WHY = {OPERAND: "operand", ROOM: "room", QUEUE: "queue"}


def timeline(plan: Schedule) -> Timeline:
    """Return the schedule with times in microseconds; lanes that do nothing are left out."""
    used = {(step.core, step.engine): step.lane for step in plan.residency.order}
    engines = (*COMPUTE_ENGINES, DMA)
    names_of_lanes = [
        used[core, engine] for core in range(plan.cores) for engine in engines
        if plan.busy[engine] and (core, engine) in used
    ]  # fmt: skip
    lanes = {lane: n for n, lane in enumerate(names_of_lanes)}
    names: dict[str, int] = {}
    order = plan.residency.order
    by_start = sorted(range(len(order)), key=plan.start.__getitem__)
    numbers = {at: n for n, at in enumerate(by_start[:MOST_SPANS])}
    spans = Spans()
    free = [0.0] * len(lanes)
    for at in numbers:
        step = order[at]
        if step.opcode == BARRIER:
            continue
        lane = lanes[step.lane]
        start = max(plan.start[at], free[lane])  # copies of a loop's iterations may touch by a rounding
        end = max(plan.end[at], start)
        free[lane] = end
        spans.lane.append(lane)
        spans.name.append(names.setdefault(step.opcode, len(names)))
        spans.line.append(step.line)
        spans.start_us.append(round(start / 1000, 4))
        spans.us.append(round((end - start) / 1000, 4))
        spans.cause.append(numbers.get(plan.cause[at], -1))
        spans.why.append(_WHY.get(plan.why[at], ""))
    us = plan.total / 1000
    busy = [_shares(plan, lane) for lane in lanes]
    last = us if len(numbers) == len(order) else max(spans.start_us, default=0.0)
    return Timeline(us, list(lanes), list(names), busy, spans, last)


def _shares(plan: Schedule, lane: str) -> list[float]:
    """Return the lane's share of each of ``_PARTS`` equal parts of the time."""
    mine = [n for n, step in enumerate(plan.residency.order) if step.lane == lane]
    start, end = _sorted(plan.start, mine), _sorted(plan.end, mine)
    done = np.cumsum(np.concatenate([[0.0], end - start]))
    edges = np.linspace(0.0, plan.total, _PARTS + 1)
    # work begun before an edge, less what of the span under way lies behind it
    begun = np.searchsorted(start, edges, side="right")
    last = np.maximum(begun - 1, 0)
    behind = np.where(begun > 0, np.maximum(end[last] - edges, 0.0), 0.0)
    share = np.diff(done[begun] - behind) / max(plan.total / _PARTS, 1e-9)
    return [round(float(s), 3) for s in np.clip(share, 0.0, 1.0)]


def _sorted(times: Sequence[float], mine: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.sort(np.asarray([times[n] for n in mine], dtype=np.float64))
