"""What a trace says about a kernel: its time as an interval, what bounds it, what each line costs."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_profiling.nki.instruction import DMA, Trace
from accelopt_profiling.nki.time_model.hardware import Hardware
from accelopt_profiling.nki.time_model.schedule import Schedule, schedule


@dataclass
class Estimate:
    """Times in microseconds; ``percent_of_peak`` is 0..100 against the roofline of ``roofline_us``."""

    us: float
    low_us: float
    high_us: float
    roofline_us: float
    percent_of_peak: float
    bound: str
    schedule: Schedule
    busy: dict[str, float] = field(default_factory=dict)  # engine -> share of the time, 0..1


def estimate(trace: Trace, hardware: Hardware) -> Estimate:
    """The model's answer for one launch (or several, one after another) recorded in ``trace``."""
    plan = schedule(trace.instructions, hardware)
    us = plan.total / 1000 * hardware.scale
    roofline = roofline_us(trace, hardware)
    busiest = max(plan.busy, key=lambda e: plan.busy[e])
    bound = "memory" if busiest == DMA else busiest
    return Estimate(
        us, us * hardware.low, us * hardware.high, roofline, min(100.0, 100 * roofline / us) if us else 0.0,
        bound, plan,
        {e: t / plan.total if plan.total else 0.0 for e, t in plan.busy.items()},
    )  # fmt: skip


def roofline_us(trace: Trace, hardware: Hardware) -> float:
    """The least time by HBM bandwidth for inputs and outputs once, and by TensorE's peak for the useful products."""
    memory = (trace.input_bytes + trace.output_bytes) / hardware.hbm_gbps / 1000
    narrow = sum(i.flops for i in trace.instructions if not i.transpose and i.itemsize < 4)
    wide = sum(i.flops for i in trace.instructions if not i.transpose and i.itemsize >= 4)
    product = wide / hardware.fp32_tflops / 1e6 + narrow / hardware.bf16_tflops / 1e6
    return max(memory, product)
