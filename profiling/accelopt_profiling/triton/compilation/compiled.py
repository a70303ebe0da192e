"""The compiler's facts about one launch's kernel, as plain data: registers, spills, instructions, and its occupancy:
how many programs fit on one multiprocessor at once, and what limits that.

The formula of the occupancy is that of NVIDIA's calculator (``cuda_occupancy.h``): registers are given out per warp in
blocks and by quarter of the multiprocessor, shared memory per program in blocks. With an AMD GPU's figures it is the
one of its compute units: waves per SIMD from vector registers, workgroups from LDS.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_profiling.quantity import Quantity, compiled
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.compilation.instructions import AssemblyLoop
from accelopt_profiling.triton.compilation.integers import IntegerInstructions
from accelopt_profiling.triton.compilation.ttgir import Access

_USAGE = re.compile(r"\b(REG|STACK|SHARED|LOCAL):(\d+)")
_DEPOT = re.compile(r"\.local\s+\.align\s+\d+\s+\.b8\s+\S*depot\S*\[(\d+)\]")
_AMD = re.compile(
    r"^\s*(?:- )?\.(vgpr_count|sgpr_count|vgpr_spill_count|private_segment_fixed_size):\s+(\d+)", re.M
)


class ResourcesUnknownError(RuntimeError):
    """The compiler's report of registers is missing; the message says why."""


@dataclass(frozen=True)
class Resources:
    """Per thread: ``registers``, ``stack_bytes``, and the part of the stack that holds spilled registers."""

    registers: int
    stack_bytes: int
    spill_bytes: int


def cuda_tool(name: str) -> str:
    """Return the path of "cuobjdump" or "nvdisasm", as Triton finds it (its wheel, or ``TRITON_<NAME>_PATH``)."""
    import triton

    wheel = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    return os.environ.get(f"TRITON_{name.upper()}_PATH") or str(wheel)


def cubin_resources(cubin: bytes, ptx: str, cuobjdump: str, *, timeout: float = 20.0) -> Resources:
    """Return the resources of an NVIDIA cubin through ``cuobjdump -res-usage`` (5 to 12 ms).

    ptxas puts spilled registers on the stack, beside the local arrays the PTX declares (``__local_depot``): what is
    left of the stack after those is spills.

    Raises:
        ResourcesUnknownError: cuobjdump is missing, failed or printed something else.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            command = [cuobjdump, "-res-usage", file.name]
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ResourcesUnknownError(f"cuobjdump did not finish: {error}") from error
    usage = {key: int(value) for key, value in _USAGE.findall(done.stdout)}
    if done.returncode != 0 or "REG" not in usage:
        raise ResourcesUnknownError(
            f"cuobjdump -res-usage gave no registers: {(done.stderr or done.stdout).strip()[:300]}"
        )
    stack = usage.get("STACK", 0) + usage.get("LOCAL", 0)
    declared = sum(int(size) for size in _DEPOT.findall(ptx))
    return Resources(usage["REG"], stack, max(0, stack - declared))


def amdgcn_resources(amdgcn: str) -> Resources:
    """Return the resources of an AMD kernel from the metadata at the end of its assembly.

    ``registers`` are vector registers, accumulation registers included. A spilled vector register is 4 bytes; what
    the compiler spilled into accumulation registers is not in memory and not counted.

    Raises:
        ResourcesUnknownError: the text has no such metadata.
    """
    fields = {key: int(value) for key, value in _AMD.findall(amdgcn)}
    if "vgpr_count" not in fields:
        raise ResourcesUnknownError("the assembly has no .vgpr_count")
    stack = fields.get("private_segment_fixed_size", 0)
    spilled = min(stack, 4 * fields.get("vgpr_spill_count", 0))
    return Resources(fields["vgpr_count"], stack, spilled)


@dataclass(frozen=True)
class CompileProblem:
    """The reason why no kernel can run: ``kind`` is "out-of-resources" or "compile-error"; or why none was made here:
    "toolchain" or "too-wide" a block.

    ``line`` is the 1-based line of the user's file, where the compiler names one.
    """

    kind: str
    message: str
    line: int | None = None

    @property
    def refused(self) -> bool:
        """Whether the target cannot launch the kernel; otherwise that is not known."""
        return self.kind in ("out-of-resources", "compile-error")


@dataclass(frozen=True)
class CompiledFacts:
    """The compiled kernel for one architecture ("sm_90", "gfx942").

    Registers, stack and spills are per thread; shared memory (bytes), tensor memory (columns) and warps per program.
    ``instructions`` counts each class of instruction (see ``instructions``) in the whole kernel,
    ``lines`` per 1-based source line, ``loops`` in one iteration. ``detail`` says what was read: "assembly"
    (PTX, which is before register allocation, or AMD machine code) or "machine code" (after nvdisasm).
    ``access_bytes`` is the widest global access of one thread per line, ``integers`` are the integer instructions per
    line, always of the assembly. ``problem`` is set where the kernel cannot
    be compiled or launched; then the numbers that are unknown are None or empty.
    """

    target: str
    architecture: str
    warps: int = 0
    stages: int = 0
    programs_per_cluster: int = 1
    registers: int | None = None
    stack_bytes: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    tensor_memory_columns: int = 0
    occupancy: MultiprocessorOccupancy | None = None
    matrix_unit: str | None = None
    pipeline_depth: int = 1
    instructions: dict[str, int] = field(default_factory=dict)
    lines: dict[int, dict[str, int]] = field(default_factory=dict)
    loops: list[AssemblyLoop] = field(default_factory=list)
    access_bytes: dict[int, int] = field(default_factory=dict)
    integers: dict[int, IntegerInstructions] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    convert_layouts: dict[int, int] = field(default_factory=dict)
    detail: str = "assembly"
    problem: CompileProblem | None = None
    seconds: float = 0.0
    cache_hit: bool = False
    toolchain: dict[str, str] = field(default_factory=dict)

    def quantities(self) -> dict[str, Quantity]:
        """Return the numbers for a measurement, each known as "compiled"."""
        values = {
            "registers": (self.registers, "per thread"),
            "spills": (self.spill_bytes, "bytes per thread"),
            "stack": (self.stack_bytes, "bytes per thread"),
            "shared_memory": (self.shared_bytes, "bytes"),
            "tensor_memory": (self.tensor_memory_columns or None, "columns"),
            "warps": (self.warps or None, "per program"),
            "pipeline_depth": (self.pipeline_depth if self.pipeline_depth > 1 else None, "tiles"),
        }
        quantities = {
            name: compiled(value, unit) for name, (value, unit) in values.items() if value is not None
        }
        if self.occupancy is not None:
            quantities["occupancy"] = compiled(100 * self.occupancy.share, "%")
            quantities["programs_per_multiprocessor"] = compiled(self.occupancy.programs, "programs")
        for kind in ("tensor", "async_copy", "bulk_copy", "barrier", "special"):
            if self.instructions.get(kind):
                quantities[f"{kind}_instructions"] = compiled(self.instructions[kind], "instructions")
        return quantities


QUARTERS = 4  # a multiprocessor is four partitions with an equal share of registers; a CU has four SIMDs


@dataclass(frozen=True)
class MultiprocessorOccupancy:
    """``programs`` and ``warps`` resident on one multiprocessor.

    ``share`` (0..1) of the warps it can hold; ``limit`` is what allows no more: "registers", "shared memory", "tensor
    memory", "warps" or "programs".
    """

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
