"""The least time that a kernel's work can take on a device, and the target that a device's name belongs to."""

from __future__ import annotations

import re

from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.targets.target import target_names

#: A device may run a little above its datasheet.
ALLOWANCE = 0.9
_ARITHMETIC = ("tensor core", "fp32", "special functions")
_MICROSECONDS = 1e6


def floor_us(estimate: KernelMeasurement, target: GpuTarget) -> float:
    """Return the microseconds that the executed work needs at the datasheet's peaks.

    0 when nothing is known.

    Bytes: what must cross DRAM (the low end of the estimate's interval) less the L2 cache, which may still hold what
    was written last. Arithmetic: the time at peak, where that is what bounds the kernel.
    """
    moved = estimate.quantities.get("dram_bytes")
    low = moved.low if moved is not None and moved.low is not None else 0.0
    floor = max(0.0, low - target["l2_bytes"]) / target["dram_bandwidth"] * _MICROSECONDS
    if estimate.bound in _ARITHMETIC and estimate.percent_of_peak and estimate.latency.us:
        floor = max(floor, estimate.percent_of_peak / 100 * estimate.latency.us)
    return floor


def impossible(latency: Latency, floor: float) -> bool:
    """Check whether a measured time is one that the device cannot reach, its whole interval below the floor."""
    high = latency.high_us if latency.high_us is not None else latency.us
    return high is not None and high < ALLOWANCE * floor


def target_of_device(name: str) -> str | None:
    """Return the target that a device's own name ("NVIDIA H100 80GB HBM3") belongs to; None when none fits
    for sure."""
    words = set(re.findall(r"[a-z]+[0-9]+[a-z]*|[a-z]+|[0-9]+", name.lower().replace("geforce rtx ", "rtx")))
    fitting = []
    for candidate in target_names("gpu"):
        parts = candidate.split("_")
        if all(part in words for part in parts):
            fitting.append((len(parts), candidate))
    if not fitting:
        return None
    return max(fitting)[1]
