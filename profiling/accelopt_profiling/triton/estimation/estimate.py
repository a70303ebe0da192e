"""Estimate the time of a launch on a GPU that is not there: a roofline with an interval.

The interval covers what the model leaves out. On A100 and H100 it was checked against published timings
(docs/explanation/triton-estimate.md): of memory-bound kernels above 40 us at least 9 shapes of 10 lie
within -25 % and +33 % of the estimate. Other devices, and kernels bound by arithmetic, were not checked and get a wider
one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known, Quantity, estimated
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.compilation.compiled import CompiledFacts
from accelopt_profiling.triton.compilation.occupancy import occupancy
from accelopt_profiling.triton.estimation.roofline import ideal_time, latency_bound_time, resource_times, work
from accelopt_profiling.triton.estimation.traffic import Traffic, traffic
from accelopt_profiling.triton.interpreter.counting import LaunchCounts

UNCHECKED_LOW, UNCHECKED_HIGH = 0.6, 2.0  # arithmetic-bound kernels: never compared with a device
FLOOR_LOW = 0.5  # of the launch floor: in a CUDA graph or behind another kernel a launch costs less
ARITHMETIC = ("tensor core", "fp32", "special functions")
ASSUMED_REGISTERS, ASSUMED_WARPS = 32, 4  # before the kernel is compiled


@dataclass(frozen=True)
class LaunchEstimate:
    """``latency`` in microseconds. ``bound``: "memory", "L2", "tensor core", "fp32", "special functions" or "launch".

    ``percent_of_peak`` is 100 where every byte crosses DRAM once at the datasheet's bandwidth, or the arithmetic
    runs at its peak. ``times_us`` has the time of each resource alone. ``quantities``: "dram_bytes".
    """

    latency: Latency
    bound: str
    percent_of_peak: Quantity
    times_us: dict[str, float] = field(default_factory=dict)
    quantities: dict[str, Quantity] = field(default_factory=dict)


def estimate(counts: LaunchCounts, compiled: CompiledFacts | None, target: GpuTarget) -> LaunchEstimate:
    """Estimate one launch from what its sampled programs did and what the compiler made of it.

    The time is the launch floor and the longest of DRAM, L2 and arithmetic. Within a program the matrix product, the
    element operations and the special functions depend on each other, between resident programs they overlap: they
    count as the root of the sum of their squares, between the longest of them and their sum.

    Pure and fast (well below a millisecond). ``compiled`` may be None: then the occupancy is guessed.

    Raises:
        ValueError: no program was sampled, so nothing is known.
    """
    if counts.sampled < 1:
        raise ValueError("no program of the launch was interpreted: there is nothing to estimate from")
    resident = _resident_programs(counts, compiled, target)
    moved = traffic(counts, target, resident)
    done = work(counts, target, compiled)
    times = resource_times(counts, done, moved, target, compiled)
    floor = target["model.launch_floor"]
    arithmetic = math.hypot(*(times[name] for name in ARITHMETIC))
    longest = max(times["memory"], times["L2"], arithmetic)
    group = ARITHMETIC if longest == arithmetic else ("memory", "L2")
    slowest = max(group, key=lambda name: times[name])
    bound = slowest if longest >= floor else "launch"
    expected = floor + longest
    low, high = _interval(moved, times, arithmetic, slowest, floor, compiled, target)
    high = max(high, floor + latency_bound_time(counts, moved, times["memory"], resident, target))
    ideal = ideal_time(done, moved, target)
    quantities = {"dram_bytes": estimated(moved.dram, moved.dram_low, moved.dram_high, "bytes")}
    return LaunchEstimate(
        Latency(expected, min(low, expected), max(high, expected), Known.ESTIMATED),
        bound,
        estimated(_percent(ideal, expected), _percent(ideal, high), _percent(ideal, low), "%"),
        times,
        quantities,
    )


def _interval(
    moved: Traffic,
    times: dict[str, float],
    arithmetic: float,
    slowest: str,
    floor: float,
    compiled: CompiledFacts | None,
    target: GpuTarget,
) -> tuple[float, float]:
    """Return two times in us: with full overlap and reuse in L2, and without reuse or overlap that is not certain."""
    low_factor, high_factor = target["model.interval_low"], target["model.interval_high"]
    if slowest != "memory":
        low_factor, high_factor = min(low_factor, UNCHECKED_LOW), max(high_factor, UNCHECKED_HIGH)
    per_byte = times["memory"] / moved.dram if moved.dram else 0.0
    others = [value for name, value in times.items() if name != "memory"]
    low = low_factor * (max(per_byte * moved.dram_low, *others) + FLOOR_LOW * floor)
    high = high_factor * (max(per_byte * moved.dram_high, *others, arithmetic) + floor)
    if not _overlaps(compiled, slowest):
        high = max(high, sum(times.values()) + floor)
    return low, high


def _percent(ideal: float, actual: float) -> float:
    return min(100.0, 100 * ideal / actual) if actual > 0 else 0.0


def _resident_programs(counts: LaunchCounts, compiled: CompiledFacts | None, target: GpuTarget) -> int:
    if compiled is not None and compiled.occupancy is not None:
        each = compiled.occupancy.programs
    else:
        each = occupancy(target, warps=ASSUMED_WARPS, registers=ASSUMED_REGISTERS, shared_bytes=0).programs
    return min(counts.programs, max(1, each) * int(target["multiprocessors"]))


def _overlaps(compiled: CompiledFacts | None, slowest: str) -> bool:
    """Return whether loads and arithmetic surely overlap: by many resident programs or by pipelining."""
    if slowest in ("memory", "L2") or compiled is None:
        return slowest in ("memory", "L2")
    return compiled.pipeline_depth > 1
