"""Estimate what a launch costs as part of a much larger one, where starting it counts for nothing."""

from __future__ import annotations

import math
from dataclasses import replace

from accelopt_profiling.quantity import Quantity, estimated
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.compilation.compiled import CompiledFacts
from accelopt_profiling.triton.estimation.estimate import estimate
from accelopt_profiling.triton.estimation.residency import residency
from accelopt_profiling.triton.estimation.traffic import traffic
from accelopt_profiling.triton.interpreter.counting import LaunchCounts

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
