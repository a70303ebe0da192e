"""Estimates a kernel's time from its trace: an interval, what bounds it, what each line costs, and the reason: the
critical path, and the waits of an engine with their causes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from accelopt_profiling.nki.compute.process_settings import collection_paused
from accelopt_profiling.nki.data.instruction import COMPUTE_ENGINES, DMA, Trace
from accelopt_profiling.nki.time_model.hardware import Compiler, Hardware
from accelopt_profiling.nki.time_model.schedule import OPERAND, QUEUE, ROOM, Schedule, prepare, schedule
from accelopt_profiling.nki.time_model.work import Products, Work, least_times_us, needed_products, operations

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
    free: dict[str, float] = defaultdict(float)  # by lane: an engine of each core
    idle_ns: dict[tuple[int, str, int, str], float] = defaultdict(float)
    for n in mine:
        idle = plan.start[n] - free[order[n].lane]
        cause, why = plan.cause[n], plan.why[n]
        if idle > 0.0 and cause >= 0 and why in (OPERAND, ROOM):
            other = order[cause]
            what = "room" if why == ROOM else "operand"
            idle_ns[order[n].line, other.engine, other.line, what] += idle / plan.cores
        free[order[n].lane] = max(free[order[n].lane], plan.end[n])
    return sorted(
        (Wait(engine, line, by, cause_line, why, ns) for (line, by, cause_line, why), ns in idle_ns.items()),
        key=lambda wait: -wait.ns,
    )


#: An engine that is busy for less than this share of the time is not what holds the kernel back.
_SATURATED = 0.5


@dataclass
class TimeEstimate:
    """Times in microseconds; ``percent_of_peak`` is 0..100 against ``roofline_us``, the least time of the work with
    ``product_passes`` passes of TensorE for a product.

    ``bound`` is the critical engine ("memory" for DMA), or "latency" where even that one stands still half of the time.
    ``critical`` is the engine with the most work, ``busy`` each engine's share of the time (0..1), ``waits`` where
    the critical engine stands still and for what, ``path`` what the critical path runs through.
    """

    us: float
    low_us: float
    high_us: float
    roofline_us: float
    percent_of_peak: float
    bound: str
    schedule: Schedule
    product_passes: float = 0.0
    critical: str = DMA
    busy: dict[str, float] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    path: Path = field(default_factory=lambda: Path({}, {}))


@collection_paused()
def estimate(trace: Trace, hardware: Hardware, compiler: Compiler | None = None) -> TimeEstimate:
    """Return the model's answer for one launch (or several, one after another) recorded in ``trace``.

    ``compiler`` says what is done to the program before it runs; by default what that of its dialect does. The
    start of a launch is part of the time; of several launches it is counted once.
    """
    compiler = compiler or hardware.compiler_of(trace.dialect)
    plan = schedule(prepare(trace.instructions, hardware, compiler), hardware)
    us = (plan.total + hardware.launch_ns) / 1000 if trace.instructions else 0.0
    products = needed_products(trace.instructions)
    roofline = roofline_us(trace, products, plan, hardware)
    busiest = max(plan.busy, key=lambda e: plan.busy[e])
    latency = dict.fromkeys(COMPUTE_ENGINES, hardware.semaphore_ns) | {DMA: hardware.dma_latency_ns}
    bound = "memory" if busiest == DMA else busiest
    if plan.busy[busiest] < _SATURATED * plan.total:
        bound = "latency"
    return TimeEstimate(
        us,
        low_us=max(0.0, us - plan.half_clock_ns / 1000) * hardware.low,
        high_us=us * hardware.high,
        roofline_us=roofline,
        percent_of_peak=100 * roofline / us if us else 0.0,
        bound=bound,
        schedule=plan,
        product_passes=products.passes,
        critical=busiest,
        busy={e: t / plan.total if plan.total else 0.0 for e, t in plan.busy.items()},
        waits=waits(plan, busiest),
        path=critical_path(plan, latency),
    )


def roofline_us(trace: Trace, products: Products, plan: Schedule, hardware: Hardware) -> float:
    """Return the least time of the work that the trace's results need on the cores that share it. Of an input or output
    no more counts than is moved: a kernel may read a part."""
    least_bytes = min(trace.input_bytes, plan.read_bytes) + min(trace.output_bytes, plan.write_bytes)
    by_engine = ((s.instruction, s.engine) for s in plan.residency.order if s.instruction is not None)
    work = Work(least_bytes, products.in_float32, products.narrow, operations(by_engine))
    return max(least_times_us(work, hardware).values()) / plan.cores
