"""Estimates a kernel's time from its trace: an interval, what bounds it, and what each line costs."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_profiling.nki.data.instruction import COMPUTE_ENGINES, DMA, Trace
from accelopt_profiling.nki.time_model.explain import Path, Wait, critical_path, waits
from accelopt_profiling.nki.time_model.hardware import Compiler, Hardware
from accelopt_profiling.nki.time_model.schedule import Schedule, prepare, schedule

#: An engine that is busy for less than this share of the time is not what holds the kernel back.
_SATURATED = 0.5


@dataclass
class TimeEstimate:
    """Times in microseconds; ``percent_of_peak`` is 0..100 against the roofline of ``roofline_us``.

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
    critical: str = DMA
    busy: dict[str, float] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    path: Path = field(default_factory=lambda: Path({}, {}))


def estimate(trace: Trace, hardware: Hardware, compiler: Compiler | None = None) -> TimeEstimate:
    """Return the model's answer for one launch (or several, one after another) recorded in ``trace``.

    ``compiler`` says what is done to the program before it runs; by default what the hardware's usual one does. The
    start of a launch is part of the time; of several launches it is counted once.
    """
    plan = schedule(prepare(trace.instructions, hardware, compiler), hardware)
    us = (plan.total + hardware.launch_ns) / 1000
    roofline = roofline_us(trace, hardware)
    busiest = max(plan.busy, key=lambda e: plan.busy[e])
    latency = dict.fromkeys(COMPUTE_ENGINES, hardware.semaphore_ns) | {DMA: hardware.dma_latency_ns}
    bound = "memory" if busiest == DMA else busiest
    if plan.busy[busiest] < _SATURATED * plan.total:
        bound = "latency"
    return TimeEstimate(
        us, us * hardware.low, us * hardware.high, roofline, min(100.0, 100 * roofline / us) if us else 0.0,
        bound, plan, busiest,
        {e: t / plan.total if plan.total else 0.0 for e, t in plan.busy.items()},
        waits(plan, busiest), critical_path(plan, latency),
    )  # fmt: skip


def roofline_us(trace: Trace, hardware: Hardware) -> float:
    """Return the least time by HBM bandwidth for inputs and outputs once, and by TensorE's peak for the
    useful products."""
    memory = (trace.input_bytes + trace.output_bytes) / hardware.hbm_gbps / 1000
    narrow = sum(i.flops for i in trace.instructions if not i.transpose and i.itemsize < 4)
    wide = sum(i.flops for i in trace.instructions if not i.transpose and i.itemsize >= 4)
    product = wide / hardware.fp32_tflops / 1e6 + narrow / hardware.bf16_tflops / 1e6
    return max(memory, product)
