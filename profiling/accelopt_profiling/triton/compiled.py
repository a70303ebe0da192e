"""What the compiler says about one launch's kernel. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_profiling.quantity import Quantity, compiled
from accelopt_profiling.triton.listing import Loop
from accelopt_profiling.triton.occupancy import Occupancy
from accelopt_profiling.triton.ttgir import Access


@dataclass(frozen=True)
class CompileProblem:
    """Why there is no kernel that could run: ``kind`` is "out-of-resources", "compile-error" or "toolchain".

    ``line`` is the 1-based line of the user's file, where the compiler names one.
    """

    kind: str
    message: str
    line: int | None = None


@dataclass(frozen=True)
class CompiledFacts:
    """What the compiler made of a kernel for one architecture ("sm_90", "gfx942").

    Registers, stack and spills are per thread; shared memory (bytes), tensor memory (columns) and warps per program.
    ``instructions`` counts each class of instruction (see ``instruction_classes``) in the whole kernel,
    ``lines`` per 1-based source line, ``loops`` in one iteration. ``detail`` says what was read: "assembly"
    (PTX, which is before register allocation, or AMD machine code) or "machine code" (after nvdisasm).
    ``access_bytes`` is the widest global access of one thread per line. ``problem`` is set where the kernel cannot
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
    occupancy: Occupancy | None = None
    matrix_unit: str | None = None
    pipeline_depth: int = 1
    instructions: dict[str, int] = field(default_factory=dict)
    lines: dict[int, dict[str, int]] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    access_bytes: dict[int, int] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    convert_layouts: dict[int, int] = field(default_factory=dict)
    detail: str = "assembly"
    problem: CompileProblem | None = None
    seconds: float = 0.0
    cache_hit: bool = False
    toolchain: dict[str, str] = field(default_factory=dict)

    def quantities(self) -> dict[str, Quantity]:
        """The numbers for a measurement, each known as "compiled"."""
        found = {
            "registers": (self.registers, "per thread"),
            "spills": (self.spill_bytes, "bytes per thread"),
            "stack": (self.stack_bytes, "bytes per thread"),
            "shared_memory": (self.shared_bytes, "bytes"),
            "tensor_memory": (self.tensor_memory_columns or None, "columns"),
            "warps": (self.warps or None, "per program"),
            "pipeline_depth": (self.pipeline_depth if self.pipeline_depth > 1 else None, "tiles"),
        }
        quantities = {
            name: compiled(value, unit) for name, (value, unit) in found.items() if value is not None
        }
        if self.occupancy is not None:
            quantities["occupancy"] = compiled(100 * self.occupancy.share, "%")
            quantities["programs_per_multiprocessor"] = compiled(self.occupancy.programs, "programs")
        for kind in ("tensor", "async_copy", "bulk_copy", "barrier", "special"):
            if self.instructions.get(kind):
                quantities[f"{kind}_instructions"] = compiled(self.instructions[kind], "instructions")
        return quantities
