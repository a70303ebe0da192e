"""Compute the time that programs wait: to be started, and for loads that nothing was loaded ahead of.

A program starts, waits for its first load, and in each later iteration of a loop over loads waits again. A pipelined
loop has several loads under way, so a wait is shared among them. Programs that are resident together wait at the same
time; each round of them waits anew.
"""

from __future__ import annotations

from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.estimation.residency import LaunchResidency
from accelopt_profiling.triton.estimation.traffic import Traffic
from accelopt_profiling.triton.interpreter.counting import LaunchCounts


def load_latency(moved: Traffic, target: GpuTarget) -> float:
    """Return the microseconds of a load in a loop: between L2's and DRAM's latency, by where the data come from."""
    near, far = target["model.l2_latency"], target["model.load_latency"]
    missed = min(1.0, moved.dram / moved.from_l2) if moved.from_l2 else 1.0
    return near + missed * (far - near)


def start_time(residency: LaunchResidency, target: GpuTarget) -> float:
    """Return the microseconds that starting programs takes: a round of them starts where the one before ended."""
    return residency.rounds * target["model.program_start"]


def wait_times(
    counts: LaunchCounts, moved: Traffic, residency: LaunchResidency, target: GpuTarget
) -> dict[int, float]:
    """Return the microseconds that a launch waits for loads, by source line; line 0 has each program's first load."""
    latency = load_latency(moved, target)
    times = {0: residency.rounds * target["model.load_latency"]}
    for number, line in counts.lines.items():
        if line.waits:
            each = latency / (residency.depth if number in residency.ahead else 1)
            times[number] = times.get(number, 0.0) + residency.rounds * each * line.waits / counts.sampled
    return times
