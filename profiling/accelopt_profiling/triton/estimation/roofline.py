"""Compute the time that each part of the machine needs for a launch if nothing else delays it.

One roof per resource (Williams, Waterman, Patterson, "Roofline", CACM 2009): bytes, operations or updates of the whole
launch, divided by what the device does of them in a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.compilation.compiled import CompiledFacts
from accelopt_profiling.triton.estimation.residency import LaunchResidency
from accelopt_profiling.triton.estimation.traffic import Traffic
from accelopt_profiling.triton.interpreter.counting import LaunchCounts

MICROSECONDS = 1e6
#: What the caches and DRAM do, one beside the other.
MEMORY = ("memory", "L2", "L1", "atomics")
#: How far these overlap (the exponent that joins them): what comes from DRAM goes through L2 too, so what L2 answers
#: beside it is not free. On Liger-Kernel's published times 2 agrees as well as any (docs/results/triton-estimate.md).
MEMORY_OVERLAP = 2.0
#: What the programs of one multiprocessor do, one after the other within a program.
ARITHMETIC = ("tensor core", "shared memory", "fp32", "fp64", "integer", "special functions", "spills")


@dataclass(frozen=True)
class LaunchWork:
    """Operations of the whole launch.

    ``integers`` by line in 32-bit additions, ``matrix_flops`` by the peak that applies ("fp16", "tf32", ...).

    ``products`` counts the matrix products of the programs. ``operand_bytes`` are what matrix instructions read from
    shared memory, ``spilled_bytes`` what spilled registers move through L1, ``updates`` the atomic updates of the most
    updated addresses, one after the other.
    """

    float_operations: float
    double_operations: float
    special_operations: float
    integers: dict[int, float]
    matrix_flops: dict[str, float]
    products: float
    operand_bytes: float
    spilled_bytes: float
    updates: float


def work(
    counts: LaunchCounts, target: GpuTarget, compiled: CompiledFacts | None, residency: LaunchResidency
) -> LaunchWork:
    """Scale the sample's operations to the launch.

    Matrix products that the compiler turned into ordinary multiply-adds (it found no matrix instruction for their
    types or shapes) count as floating-point operations, two to an instruction. An operation on fewer lanes than the
    program has threads takes as long as one on all.
    """
    scale = counts.programs / counts.sampled if counts.sampled else 0.0
    lines = counts.lines.values()
    idle = sum(n * max(0, residency.threads - size) for size, n in counts.narrow.items())
    floats = scale * (sum(line.float_ops for line in lines) + idle)
    doubles = scale * sum(line.double_ops for line in lines)
    matrix: dict[str, float] = {}
    ordinary = compiled is not None and compiled.problem is None and compiled.matrix_unit is None
    for line in lines:
        for dtype, flops in line.mma_flops.items():
            if ordinary and dtype == "fp64":
                doubles += scale * flops / 2
            elif ordinary:
                floats += scale * flops / 2
            else:
                peak = matrix_peak(dtype, target)
                matrix[peak] = matrix.get(peak, 0.0) + scale * flops
    return LaunchWork(
        floats,
        doubles,
        special_operations=scale * sum(line.special for line in lines),
        integers={
            line: scale * operations for line, operations in _integers(counts, compiled, residency).items()
        },
        matrix_flops=matrix,
        products=scale * sum(counts.dots.values()) if matrix else 0.0,
        operand_bytes=scale * _operand_bytes(counts, compiled) if matrix else 0.0,
        spilled_bytes=counts.programs * _spilled_bytes(counts, compiled, residency),
        updates=sum(line.hottest for line in lines),
    )


def _integers(
    counts: LaunchCounts, compiled: CompiledFacts | None, residency: LaunchResidency
) -> dict[int, float]:
    """Return the sample's integer operations by line, in additions.

    Each line has at most as many as were interpreted, and at most as many instructions as the compiler left, those in
    loops each time that a program came to the line: it hoists, shares and vectorises most arithmetic on addresses.
    Before the kernel is compiled nothing is known of that, and none are counted.
    """
    if compiled is None or compiled.problem is not None:
        return {}
    operations = {}
    for number, line in counts.lines.items():
        if line.int_ops and (code := compiled.integers.get(number)) is not None:
            executed = residency.threads * (code.once * counts.sampled + code.looped * line.visits)
            operations[number] = code.cost * min(line.int_ops, executed)
    return operations


def _operand_bytes(counts: LaunchCounts, compiled: CompiledFacts | None) -> float:
    """Return the bytes that the sample's products read from shared memory.

    Each group of warps reads the rows and the columns of its part of the product: warps of ``mma`` cut it along both
    sides, groups of four warps of the later instructions along the rows (64 at least).
    """
    unit = compiled.matrix_unit if compiled is not None and compiled.problem is None else None
    warps = compiled.warps if compiled is not None and compiled.warps else 4
    total = 0.0
    for (m, n, k, size), times in counts.dots.items():
        if unit in ("wgmma", "tcgen05"):
            across, along = 1, max(1, m // 64)
        else:
            across = max(1, min(round(math.sqrt(warps * n / m)), warps, n // 8 or 1))
            along = max(1, warps // across)
        total += times * size * k * (m * across + n * along)
    return total


def _spilled_bytes(counts: LaunchCounts, compiled: CompiledFacts | None, residency: LaunchResidency) -> float:
    """Return what a program's spills move: each spilled register out and back in every iteration.

    The report of the compiler does not say where they are; registers run out where most is alive, in the loop.
    """
    if compiled is None or not compiled.spill_bytes:
        return 0.0
    return 2 * compiled.spill_bytes * residency.threads * (1 + iterations(counts))


def iterations(counts: LaunchCounts) -> float:
    """Return how often a program comes back to its loads, the mean of the sample."""
    return sum(line.waits for line in counts.lines.values()) / max(1, counts.sampled)


def matrix_peak(dtype: str, target: GpuTarget) -> str:
    """Return the name of the peak for a matrix product of ``dtype`` inputs (a Triton type name).

    Where the target has no rate for 8- or 4-bit floats, Triton converts them to fp16 first.
    """
    name = {"fp32": "tf32", "int8": "int8", "uint8": "int8"}.get(dtype, dtype)
    if name.startswith("fp8"):
        name = "fp8"
    return name if f"peak.{name}" in target.figures else "fp16"


def resource_times(
    counts: LaunchCounts,
    done: LaunchWork,
    moved: Traffic,
    target: GpuTarget,
    compiled: CompiledFacts | None,
    residency: LaunchResidency,
) -> dict[str, float]:
    """Return the microseconds of each of ``MEMORY`` and ``ARITHMETIC``.

    A launch of fewer programs than multiprocessors uses only that part of the device; of a last, partly filled round
    of programs the arithmetic units wait for the end.
    """
    multiprocessors, clock = target["multiprocessors"], target["clock"]
    active = max(1.0, min(multiprocessors, counts.programs))
    rounds = math.ceil(counts.programs / multiprocessors) if counts.programs else 1
    filled = max(1, counts.programs) / (rounds * multiprocessors)
    reachable = active * target["multiprocessor_l2_bytes_per_clock"] * clock
    dram = min(_dram_bandwidth(target), reachable)
    l1 = active * target["l1_bytes_per_clock"] * clock
    tensor = target["model.tensor_efficiency"] * _tensor_share(target, compiled)
    ordinary = target["model.fp32_efficiency"] * filled
    spilled = compiled.spill_bytes or 0 if compiled is not None else 0
    in_l1 = spilled * residency.threads * residency.each <= residency.l1_bytes
    begun = target["model.product_overhead"] / MICROSECONDS * done.products / multiprocessors
    multiplied = sum(f / (tensor * target[f"peak.{p}"]) for p, f in done.matrix_flops.items())
    seconds = {
        "memory": moved.dram / dram,
        "L2": max(moved.from_l2 / target["l2_bandwidth"], moved.past_l1 / reachable),
        "L1": moved.requested / l1,
        "atomics": done.updates / (target["atomic_updates_per_clock"] * clock),
        "tensor core": (multiplied + begun) / filled,
        "shared memory": done.operand_bytes / l1,
        "fp32": done.float_operations / (ordinary * target["peak.fp32"]),
        "fp64": done.double_operations / (ordinary * target["peak.fp64"]),
        "integer": sum(done.integers.values())
        / (target["integer_per_clock"] * multiprocessors * clock)
        / filled,
        "special functions": done.special_operations
        / (target["special_per_clock"] * multiprocessors * clock)
        / filled,
        "spills": done.spilled_bytes / (l1 if in_l1 else min(target["l2_bandwidth"], reachable)),
    }
    return {name: MICROSECONDS * value for name, value in seconds.items()}


def _dram_bandwidth(target: GpuTarget) -> float:
    """Return what DRAM delivers where nothing else delays it, in bytes per second: so much that a streaming kernel,
    whose every byte goes through L2 as well, reaches the target's ``model.dram_efficiency``."""
    streaming = target["model.dram_efficiency"] * target["dram_bandwidth"]
    share = min(0.9, streaming / target["l2_bandwidth"])
    return float(streaming / (1 - share**MEMORY_OVERLAP) ** (1 / MEMORY_OVERLAP))


def ideal_time(done: LaunchWork, moved: Traffic, target: GpuTarget) -> float:
    """Return the microseconds at the datasheet's peaks, each byte crossing DRAM once: 100 % of peak."""
    integers = sum(done.integers.values()) / (
        target["integer_per_clock"] * target["multiprocessors"] * target["clock"]
    )
    return max(
        MICROSECONDS * max(integers, moved.compulsory / target["dram_bandwidth"]),
        arithmetic_floor(done, target),
    )


def arithmetic_floor(done: LaunchWork, target: GpuTarget) -> float:
    """Return the microseconds of the launch's arithmetic at the datasheet's peaks."""
    matrix = sum(flops / target[f"peak.{peak}"] for peak, flops in done.matrix_flops.items())
    special = target["special_per_clock"] * target["multiprocessors"] * target["clock"]
    return MICROSECONDS * max(
        matrix,
        done.float_operations / target["peak.fp32"],
        done.double_operations / target["peak.fp64"],
        done.special_operations / special,
    )


def _tensor_share(target: GpuTarget, compiled: CompiledFacts | None) -> float:
    """Return the share of the tensor peak that remains with the older, synchronous matrix instruction."""
    if compiled is not None and compiled.matrix_unit == "mma" and compiled.problem is None:
        return target.get("model.synchronous_mma_share", 1.0)
    return 1.0
