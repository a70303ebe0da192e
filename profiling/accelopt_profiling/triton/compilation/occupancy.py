"""Compute how many programs fit on one multiprocessor at once, and what limits that.

The formula is that of NVIDIA's occupancy calculator (``cuda_occupancy.h``): registers are given out per warp in
blocks and by quarter of the multiprocessor, shared memory per program in blocks. With an AMD GPU's figures it is the
one of its compute units: waves per SIMD from vector registers, workgroups from LDS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from accelopt_profiling.targets import GpuTarget

QUARTERS = 4  # a multiprocessor is four partitions with an equal share of registers; a CU has four SIMDs


@dataclass(frozen=True)
class MultiprocessorOccupancy:
    """``programs`` and ``warps`` resident on one multiprocessor; ``share`` (0..1) of the warps it can hold;
    ``limit`` is what allows no more: "registers", "shared memory", "tensor memory", "warps" or "programs"."""

    programs: int
    warps: int
    share: float
    limit: str


def occupancy(
    target: GpuTarget, *, warps: int, registers: int, shared_bytes: int, tensor_memory_columns: int = 0
) -> MultiprocessorOccupancy:
    """Compute the occupancy of programs of ``warps`` warps with ``registers`` registers a thread and ``shared_bytes`` a
    program.

    ``programs`` is 0 where one program does not fit at all.

    Raises:
        ValueError: ``warps`` is not positive.
    """
    if warps < 1:
        raise ValueError(f"a program has at least one warp, got {warps}")
    block = target["register_allocation"]
    per_warp = math.ceil(max(registers, 1) * target.warp_size / block) * block
    warps_by_registers = QUARTERS * int(target["registers_per_multiprocessor"] / QUARTERS // per_warp)
    grain = target["shared_memory_allocation"]
    used = shared_bytes + target["shared_memory_reserved_per_program"]
    used = math.ceil(used / grain) * grain
    limits = {
        "programs": int(target["max_programs_per_multiprocessor"]),
        "warps": int(target["max_warps_per_multiprocessor"]) // warps,
        "registers": warps_by_registers // warps,
        "shared memory": int(target["shared_memory_per_multiprocessor"] // used) if used else 10**6,
    }
    if tensor_memory_columns:
        limits["tensor memory"] = int(target.get("tensor_memory_columns", 0)) // tensor_memory_columns
    if shared_bytes > target["shared_memory_per_program"]:
        limits["shared memory"] = 0
    limit = min(limits, key=lambda name: limits[name])
    programs = limits[limit]
    return MultiprocessorOccupancy(
        programs, programs * warps, programs * warps / target["max_warps_per_multiprocessor"], limit
    )
