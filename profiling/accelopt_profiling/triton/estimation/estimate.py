"""Estimate the time of a launch on a GPU that is not there, with an interval.

Two kinds of time: what each resource of the machine needs for the whole launch (``roofline``), and what programs wait.
How far they overlap depends on how much is under way on a multiprocessor at once: groups of warps, and tiles that a
pipelined loop loads ahead. The parts are joined as (sum of t^p)^(1/p). With p = 1, one group that loads nothing ahead,
that is their sum; p grows with what there is to do meanwhile, until only the longest counts.

A program waits to be started, for its first load, and in each later iteration of a loop over loads again. A pipelined
loop has several loads under way, so a wait is shared among them. Programs that are resident together wait at the same
time; each round of them waits anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known, Quantity, estimated
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.compilation.compiled import CompiledFacts
from accelopt_profiling.triton.estimation.residency import LaunchResidency, residency
from accelopt_profiling.triton.estimation.roofline import (
    ARITHMETIC,
    MEMORY,
    MEMORY_OVERLAP,
    MICROSECONDS,
    arithmetic_floor,
    ideal_time,
    resource_times,
    work,
)
from accelopt_profiling.triton.estimation.traffic import Traffic, traffic
from accelopt_profiling.triton.interpreter.counting import LaunchCounts

UNCHECKED_LOW, UNCHECKED_HIGH = 0.6, 2.0  # what is not bound by memory varies more
FLOOR_LOW = 0.5  # of the launch floor: in a CUDA graph or behind another kernel a launch costs less


@dataclass(frozen=True)
class LaunchEstimate:
    """``latency`` in microseconds. ``bound``: one of ``times_us`` or "launch".

    ``percent_of_peak`` is 100 where every byte crosses DRAM once at the datasheet's bandwidth, or the arithmetic
    runs at its peak. ``times_us`` has the time of each resource alone, of "latency" (programs wait for loads) and of
    "program starts". ``waits_us`` has the waits by line, ``integers_us`` the integer operations.
    ``quantities``: "dram_bytes".
    """

    latency: Latency
    bound: str
    percent_of_peak: Quantity
    times_us: dict[str, float] = field(default_factory=dict)
    waits_us: dict[int, float] = field(default_factory=dict)
    integers_us: dict[int, float] = field(default_factory=dict)
    quantities: dict[str, Quantity] = field(default_factory=dict)


def estimate(counts: LaunchCounts, compiled: CompiledFacts | None, target: GpuTarget) -> LaunchEstimate:
    """Estimate one launch from what its sampled programs did and what the compiler made of it.

    Pure and fast (well below a millisecond). ``compiled`` may be None: then the occupancy is guessed.

    Raises:
        ValueError: no program was sampled, so nothing is known.
    """
    if counts.sampled < 1:
        raise ValueError("no program of the launch was interpreted: there is nothing to estimate from")
    resident = residency(counts, compiled, target)
    moved = traffic(counts, target, resident)
    done = work(counts, target, compiled, resident)
    times = resource_times(counts, done, moved=moved, target=target, compiled=compiled, residency=resident)
    waits = wait_times(counts, moved, resident, target)
    times["latency"] = sum(waits.values())
    times["program starts"] = start_time(resident, target)
    floor = target["model.launch_floor"]
    slowest = max(times, key=lambda name: times[name])
    expected = floor + _joined(times, resident.groups, resident.depth)
    low, high = _interval(times, moved, resident=resident, slowest=slowest, floor=floor, target=target)
    least = max(_least_memory_time(moved, target), arithmetic_floor(done, target))
    low = min(max(low, least), expected)
    ideal = ideal_time(done, moved, target)
    quantities = {"dram_bytes": estimated(moved.dram, moved.dram_low, moved.dram_high, "bytes")}
    return LaunchEstimate(
        Latency(expected, low, max(high, expected), Known.ESTIMATED),
        slowest if expected - floor >= floor else "launch",
        percent_of_peak=estimated(
            _percent(ideal, expected), _percent(ideal, high), _percent(ideal, max(low, ideal)), "%"
        ),
        times_us=times,
        waits_us=waits,
        integers_us=_shares(done.integers, times["integer"]),
        quantities=quantities,
    )


def _joined(times: dict[str, float], groups: int, depth: int) -> float:
    """Return the time of all parts together.

    Within a program the matrix product, the element operations and the special functions depend on each other, and only
    other programs fill the time; memory is busy with what all asked for, also ahead.
    """
    dependent = {name: times[name] for name in ARITHMETIC if name != "shared memory"}
    dependent["tensor core"] = max(times["tensor core"], times["shared memory"])
    arithmetic = _overlapped(dependent.values(), 1 + math.log(groups, 4))
    memory = _overlapped((times[name] for name in MEMORY), MEMORY_OVERLAP)
    waiting = times["latency"] + times["program starts"]
    return _overlapped((arithmetic, memory, waiting), 1 + math.log2(groups * depth))


def _overlapped(parts: Iterable[float], exponent: float) -> float:
    """Join the times of parts: their sum where ``exponent`` is 1, and the nearer to the longest the larger it is."""
    longest = max(parts := list(parts))
    if longest <= 0:
        return 0.0
    return float(longest * sum((part / longest) ** exponent for part in parts) ** (1 / exponent))


def _interval(
    times: dict[str, float],
    moved: Traffic,
    resident: LaunchResidency,
    slowest: str,
    floor: float,
    target: GpuTarget,
) -> tuple[float, float]:
    """Return two times in us: with full reuse in L2, and without reuse or overlap that is not certain."""
    low_factor, high_factor = target["model.interval_low"], target["model.interval_high"]
    if slowest != "memory":
        low_factor, high_factor = min(low_factor, UNCHECKED_LOW), max(high_factor, UNCHECKED_HIGH)
    per_byte = times["memory"] / moved.dram if moved.dram else 0.0
    least = {**times, "memory": per_byte * moved.dram_low}
    most = {**times, "memory": per_byte * moved.dram_high}
    return (
        low_factor * (_joined(least, resident.groups, resident.depth) + FLOOR_LOW * floor),
        max(
            high_factor * (_joined(most, resident.groups, resident.depth) + floor),
            _joined(most, 1, 1) + floor,
        ),
    )


def _least_memory_time(moved: Traffic, target: GpuTarget) -> float:
    """Return the microseconds below which memory cannot be: all bytes once at the datasheet's bandwidth.

    Of a launch that fits into L2 only what is read counts, as what is written may still be there at the end.
    """
    inside = moved.compulsory <= target["l2_bytes"]
    needed = moved.compulsory_loads if inside else moved.compulsory
    return MICROSECONDS * needed / target["dram_bandwidth"]


def _shares(amounts: dict[int, float], whole: float) -> dict[int, float]:
    total = sum(amounts.values())
    return {line: whole * amount / total for line, amount in amounts.items()} if total else {}


def _percent(ideal: float, actual: float) -> float:
    return 100 * (ideal / actual) if actual > 0 else 0.0


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
    """Return the microseconds that a launch waits for loads, by source line.

    Line 0 has each program's first load.
    """
    latency = load_latency(moved, target)
    times = {0: residency.rounds * target["model.load_latency"]}
    for number, line in counts.lines.items():
        if line.waits:
            each = latency / (residency.depth if number in residency.ahead else 1)
            times[number] = times.get(number, 0.0) + residency.rounds * each * line.waits / counts.sampled
    return times


#: The larger launch moves so many times what L2 holds, in so many rounds of programs: at four times as much the time of
#: a copy moves by less than 1 %.
_TIMES_L2, _ROUNDS = 64, 64


def time_at_scale(counts: LaunchCounts, compiled: CompiledFacts | None, target: GpuTarget) -> Quantity:
    """Estimate the microseconds of a launch where one launch does the work of many: so many copies of its programs,
    each copy on data of its own, that the device is full and the data fit no cache.

    Raises:
        ValueError: no program was sampled.
    """
    copies = _copies(counts, compiled, target)
    many = replace(
        counts,
        programs=copies * counts.programs,
        tensor_bytes={name: copies * size for name, size in counts.tensor_bytes.items()},
    )
    latency = estimate(many, compiled, target).latency
    assert latency.us is not None
    assert latency.low_us is not None
    assert latency.high_us is not None
    return estimated(latency.us / copies, latency.low_us / copies, latency.high_us / copies, "us")


def _copies(counts: LaunchCounts, compiled: CompiledFacts | None, target: GpuTarget) -> int:
    resident = residency(counts, compiled, target)
    moved = traffic(counts, target, resident).compulsory
    filling = target["multiprocessors"] * target["max_threads_per_multiprocessor"] / resident.threads
    by_programs = _ROUNDS * filling / max(1, counts.programs)
    by_bytes = _TIMES_L2 * target["l2_bytes"] / moved if moved else 1.0
    return max(1, math.ceil(by_programs), math.ceil(by_bytes))
