"""Compute the time that each part of the machine needs for a launch if nothing else delays it.

t = launch floor + the longest of: DRAM bytes / bandwidth, L2 bytes / L2 bandwidth, floating-point operations /
rate of instructions that are not multiply-adds, special functions / (16 per clock and multiprocessor), matrix
operations / tensor peak (Williams, Waterman, Patterson, "Roofline", CACM 2009, with one roof per resource).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.compilation.compiled import CompiledFacts
from accelopt_profiling.triton.estimation.traffic import Traffic
from accelopt_profiling.triton.interpreter.counting import LaunchCounts

MICROSECONDS = 1e6
RESOURCES = ("memory", "L2", "tensor core", "fp32", "special functions")


@dataclass(frozen=True)
class LaunchWork:
    """Operations of the whole launch; ``matrix_flops`` by the peak that applies ("fp16", "tf32", ...)."""

    float_operations: float
    special_operations: float
    matrix_flops: dict[str, float]


def work(counts: LaunchCounts, target: GpuTarget, compiled: CompiledFacts | None) -> LaunchWork:
    """Scale the sample's operations to the launch.

    Matrix products that the compiler turned into ordinary multiply-adds (it found no matrix instruction for their
    types or shapes) count as floating-point operations, two to an instruction.
    """
    scale = counts.programs / counts.sampled if counts.sampled else 0.0
    lines = counts.lines.values()
    floats = scale * sum(line.float_ops for line in lines)
    matrix: dict[str, float] = {}
    for line in lines:
        for dtype, flops in line.mma_flops.items():
            peak = matrix_peak(dtype, target)
            matrix[peak] = matrix.get(peak, 0.0) + scale * flops
    if compiled is not None and compiled.problem is None and compiled.matrix_unit is None:
        floats += sum(matrix.values()) / 2
        matrix = {}
    return LaunchWork(floats, scale * sum(line.special for line in lines), matrix)


def matrix_peak(dtype: str, target: GpuTarget) -> str:
    """Return the name of the peak for a matrix product of ``dtype`` inputs (a Triton type name).

    Where the target has no rate for 8- or 4-bit floats, Triton converts them to fp16 first.
    """
    name = {"fp32": "tf32", "int8": "int8", "uint8": "int8"}.get(dtype, dtype)
    if name.startswith("fp8"):
        name = "fp8"
    return name if f"peak.{name}" in target.figures else "fp16"


def resource_times(
    counts: LaunchCounts, done: LaunchWork, moved: Traffic, target: GpuTarget, compiled: CompiledFacts | None
) -> dict[str, float]:
    """Return the microseconds of each of ``RESOURCES``.

    A launch of fewer programs than multiprocessors uses only that part of the device; of a last, partly filled round
    of programs the arithmetic units wait for the end.
    """
    multiprocessors = target["multiprocessors"]
    active = max(1.0, min(multiprocessors, counts.programs))
    rounds = math.ceil(counts.programs / multiprocessors) if counts.programs else 1
    filled = max(1, counts.programs) / (rounds * multiprocessors)
    reachable = active * target["multiprocessor_l2_bytes_per_clock"] * target["clock"]
    dram = min(target["model.dram_efficiency"] * target["dram_bandwidth"], reachable)
    l2 = min(target["l2_bandwidth"], reachable)
    tensor = target["model.tensor_efficiency"] * _tensor_share(target, compiled)
    seconds = {
        "memory": moved.dram / dram,
        "L2": moved.requested / l2,
        "tensor core": sum(f / (tensor * target[f"peak.{p}"]) for p, f in done.matrix_flops.items()) / filled,
        "fp32": done.float_operations / (target["model.fp32_efficiency"] * target["peak.fp32"]) / filled,
        "special functions": done.special_operations
        / (target["special_per_clock"] * multiprocessors * target["clock"])
        / filled,
    }
    return {name: MICROSECONDS * value for name, value in seconds.items()}


def latency_bound_time(
    counts: LaunchCounts, moved: Traffic, memory_us: float, resident_programs: int, target: GpuTarget
) -> float:
    """Return the microseconds if every program waited for its loads and no other program filled the time.

    Each round of resident programs pays the start of a program and one load latency for each pass over the data;
    of the transfer time a program hides only what its neighbours on the same multiprocessor move meanwhile. Liger's
    timings on A100 show this where one program fills a multiprocessor, those on H100 do not: it is a bound.
    """
    each = max(1.0, resident_programs / target["multiprocessors"])
    rounds = math.ceil(counts.programs / max(1, resident_programs))
    latency = target["model.program_start"] + moved.passes * target["model.load_latency"]
    return rounds * latency + memory_us / each


def ideal_time(done: LaunchWork, moved: Traffic, target: GpuTarget) -> float:
    """Return the microseconds at the datasheet's peaks, each byte crossing DRAM once: 100 % of peak."""
    matrix = sum(flops / target[f"peak.{peak}"] for peak, flops in done.matrix_flops.items())
    return MICROSECONDS * max(
        moved.compulsory / target["dram_bandwidth"],
        matrix,
        done.float_operations / target["peak.fp32"],
        done.special_operations / (target["special_per_clock"] * target["multiprocessors"] * target["clock"]),
    )


def _tensor_share(target: GpuTarget, compiled: CompiledFacts | None) -> float:
    """Return the share of the tensor peak that remains with the older, synchronous matrix instruction."""
    if compiled is not None and compiled.matrix_unit == "mma" and compiled.problem is None:
        return target.get("model.synchronous_mma_share", 1.0)
    return 1.0
