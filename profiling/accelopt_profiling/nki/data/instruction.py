"""The instructions of a run, and the trace of them that the time model reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.loop_counter import Slopes
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.ran import LineRecord

#: Engine names as the NKI documentation writes them; "DMA" stands for the sixteen DMA engines together.
TENSOR, VECTOR, SCALAR, GPSIMD, DMA = "TensorE", "VectorE", "ScalarE", "GpSimdE", "DMA"
COMPUTE_ENGINES = (TENSOR, VECTOR, SCALAR, GPSIMD)
#: The engines by the names that kernels use.
ENGINES = {"tensor": TENSOR, "vector": VECTOR, "scalar": SCALAR, "gpsimd": GPSIMD, "dma": DMA}

#: What each core does where the cores of a launch wait for one another: none goes on before all are there.
BARRIER = "core_barrier"


class BlockInfo:
    """Describes a block of memory without its values: its size, and where the kernel made it."""

    __slots__ = ("constant", "free_bytes", "ident", "line", "memory", "name", "shape", "shared")

    def __init__(
        self,
        ident: int,
        memory: MemorySpace,
        shape: tuple[int, ...],
        itemsize: int,
        name: str,
        line: int,
        constant: bool,
    ) -> None:
        self.ident, self.memory, self.shape, self.name, self.line = ident, memory, shape, name, line
        self.constant = constant  # never written by the kernel: an input
        self.shared = False  # in HBM, where a kernel's outputs lie
        size = itemsize
        for n in shape[1:]:
            size *= n
        self.free_bytes = size  # bytes per partition

    def another(self, ident: int) -> BlockInfo:
        """Return the description of another block like this one."""
        other = BlockInfo.__new__(BlockInfo)
        other.ident, other.memory, other.shape, other.name = ident, self.memory, self.shape, self.name
        other.line, other.constant, other.free_bytes = self.line, self.constant, self.free_bytes
        other.shared = self.shared
        return other


#: A region: a block and a half-open range per axis of its shape.
Region = tuple[BlockInfo, Box]


class TracedInstruction:
    """One instruction.

    ``engines`` lists the engines that can run it, the developer's choice or the usual one first. ``free`` is the
    number of elements per partition of the operand that sets the cost, ``flops`` counts multiply and add apart.
    ``bytes``, ``descriptors`` (contiguous runs) and ``pattern`` (what of HBM is touched) are set for DMA,
    ``accumulate`` for a matmul that adds to PSUM. ``number`` counts the instructions of a run; ``slopes`` tell how the
    pattern's offset grows with loops that are being recorded. ``core`` is the core of a launch over two that runs it.
    """

    __slots__ = (
        "accumulate", "bytes", "core", "descriptors", "engines", "flops", "free", "itemsize", "line", "number",
        "onezero", "opcode", "partitions", "pattern", "psum_inputs", "reads", "slopes", "stationary", "transpose",
        "writes",
    )  # fmt: skip

    def __init__(self, opcode: str, engines: tuple[str, ...], line: int, partitions: int, free: int) -> None:
        self.opcode, self.engines, self.line = opcode, engines, line
        self.partitions, self.free = partitions, free
        self.number = self.core = 0
        self.itemsize = 4
        self.slopes: Slopes = ()
        self.pattern: tuple[int, tuple[tuple[int, int], ...]] | None = None
        self.reads: list[Region] = []
        self.writes: list[Region] = []
        self.bytes = self.descriptors = self.flops = self.psum_inputs = self.stationary = 0
        self.accumulate = self.onezero = self.transpose = False

    def copy(self) -> TracedInstruction:
        """Return a copy of the instruction, with the same regions."""
        copy = TracedInstruction.__new__(TracedInstruction)
        copy.opcode, copy.engines, copy.line = self.opcode, self.engines, self.line
        copy.partitions, copy.free, copy.number, copy.core = self.partitions, self.free, 0, 0
        copy.slopes, copy.reads, copy.writes = (), self.reads, self.writes
        copy.itemsize, copy.pattern, copy.accumulate = self.itemsize, self.pattern, self.accumulate
        copy.bytes, copy.descriptors, copy.flops = self.bytes, self.descriptors, self.flops
        copy.psum_inputs, copy.stationary = self.psum_inputs, self.stationary
        copy.onezero, copy.transpose = self.onezero, self.transpose
        return copy

    def cost(self) -> tuple[object, ...]:
        """Return everything that its cost depends on, except the regions that it reads and writes."""
        return (
            self.opcode, self.engines, self.line, self.partitions, self.free, self.itemsize, self.bytes,
            self.descriptors, self.flops, self.psum_inputs, self.stationary, self.accumulate, self.onezero,
            self.transpose,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<{self.opcode} on {'|'.join(self.engines)} {self.partitions}x{self.free} line {self.line}>"


@dataclass
class Trace:
    """The instructions of one run in program order, and the bytes that a run cannot avoid to move. ``path`` is the
    kernel's name with those of the classes and functions around it, ``dialect`` the one it is written in ("beta1",
    "current"; empty where none is known). ``arguments`` say what the kernel was launched with, ``ran`` what of its file
    ran."""

    instructions: list[TracedInstruction] = field(default_factory=list)
    input_bytes: int = 0
    output_bytes: int = 0
    kernel: str = ""
    path: str = ""
    dialect: str = ""
    arguments: tuple[str, ...] = ()
    ran: LineRecord = field(default_factory=LineRecord)
