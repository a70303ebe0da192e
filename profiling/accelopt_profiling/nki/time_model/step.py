"""The steps of a schedule, an instruction of the trace each or a transfer that the compiler adds, with the time that
each keeps its engine busy.

Formulas: the docstrings of the ``nki.isa`` stub up to Neuron SDK 2.26.1 (engine cycles for back-to-back instructions
of one shape), plus what starting an instruction costs on each engine. A division is not in them; it is taken to cost
what the reciprocal does.

What overwrites all of a tile needs none of what was in it. The compiler places such values in buffers of their own, as
it does tiles that are allocated in the loop; ``tell_versions_apart`` does the same.
"""

from __future__ import annotations

from math import prod

from accelopt_profiling.nki.data.coverage import is_whole
from accelopt_profiling.nki.data.instruction import (
    BARRIER,
    DMA,
    GPSIMD,
    SCALAR,
    TENSOR,
    BlockInfo,
    Region,
    TracedInstruction,
)
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.operations.table import opcode_cost
from accelopt_profiling.nki.time_model.hardware import Compiler, Hardware

#: Opcodes of transfers that are not in the kernel's text.
SPILL, RELOAD = "spill", "reload"


class ScheduledStep:
    """One piece of work for one engine.

    ``number`` is the instruction's position in the trace; a transfer that was added has that of the instruction it
    is for. ``after`` is the position of the step whose end frees the room that this one needs, or -1. ``loads`` tells
    that a transfer goes to the chip. Inputs are not among ``reads``: they are always there. ``lane`` is the engine of
    one core. ``key`` is equal for steps that cost the same on the same line and core; ``psum_inputs`` are operands that
    lie in PSUM once the compiler is done.
    """

    __slots__ = (
        "accumulate", "after", "bytes", "core", "descriptors", "engine", "instruction", "key", "lane", "line", "loads",
        "number", "opcode", "psum_inputs", "reads", "writes",
    )  # fmt: skip

    instruction: TracedInstruction | None

    def __init__(self, opcode: str, line: int, number: int, engine: str, core: int = 0) -> None:
        self.opcode, self.line, self.number, self.engine = opcode, line, number, engine
        self.core, self.lane = core, f"{engine} {core}" if core else engine
        self.instruction = None
        self.reads: list[Region] = []
        self.writes: list[Region] = []
        self.after, self.key = -1, 0
        self.bytes = self.descriptors = self.psum_inputs = 0
        self.accumulate = self.loads = False


class Kinds:
    """Makes steps and numbers their kinds; steps of one kind cost the same on any hardware."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler
        self._keys: dict[object, int] = {}
        self._examples: list[ScheduledStep] = []

    def of(self, instructions: list[TracedInstruction]) -> list[ScheduledStep]:
        """Return a step per instruction, in program order."""
        return [self._of(instruction, number) for number, instruction in enumerate(instructions)]

    def _of(self, i: TracedInstruction, number: int) -> ScheduledStep:
        engine = i.engines[0]
        if (
            i.opcode in ("tensor_copy", "tensor_scalar")
            and self.compiler.scalar_first
            and SCALAR in i.engines
        ):
            engine = SCALAR
        step = ScheduledStep(i.opcode, i.line, number, engine, i.core)
        step.instruction, step.accumulate, step.psum_inputs = i, i.accumulate, i.psum_inputs
        step.reads = [region for region in i.reads if not region[0].constant]
        step.writes = list(i.writes)
        if engine == DMA:
            step.bytes, step.descriptors = i.bytes, i.descriptors
            step.loads = not any(block.memory is MemorySpace.HBM for block, _ in i.writes)
        self.number(step)
        return step

    def number(self, step: ScheduledStep) -> None:
        """Set the step's ``key``; again after a change of what it costs."""
        i = step.instruction
        if i is None or step.engine == DMA:
            kind: tuple[object, ...] = (step.opcode, step.line, step.core, step.bytes, step.descriptors)
        else:
            kind = (
                step.opcode, step.line, step.lane, i.free, i.itemsize, step.psum_inputs, i.onezero, i.stationary,
                i.transpose, i.accumulate, len(step.reads), bf16_place(i),
            )  # fmt: skip
        key = self._keys.setdefault(kind, len(self._examples))
        if key == len(self._examples):
            self._examples.append(step)
        step.key = key

    def transfer(
        self, opcode: str, block: BlockInfo, needed_by: ScheduledStep, share: float = 1.0
    ) -> ScheduledStep:
        """Return a spill or a reload of a tile, or of the ``share`` of it that is needed, in front of ``needed_by``."""
        step = ScheduledStep(opcode, block.line, needed_by.number, DMA, needed_by.core)
        step.bytes = int(block.free_bytes * block.shape[0] * share)
        step.descriptors = block.shape[0]
        step.loads = opcode == RELOAD
        whole = tuple((0, n) for n in block.shape)
        (step.writes if step.loads else step.reads).append((block, whole))
        self.number(step)
        return step

    def costs(self, hardware: Hardware) -> list[float]:
        """Return the nanoseconds that a step keeps its engine busy, by ``key``."""
        return [
            dma_ns(step.bytes, step.descriptors, hardware, self.compiler)
            if step.engine == DMA or step.instruction is None
            else engine_ns(step.instruction, step.engine, hardware, step.psum_inputs)
            for step in self._examples
        ]


def engine_ns(
    instruction: TracedInstruction, engine: str, hardware: Hardware, psum_inputs: int | None = None
) -> float:
    """Return the nanoseconds that ``instruction`` occupies the compute engine ``engine``.

    ``psum_inputs`` overrides how many of its operands lie in PSUM.
    """
    if psum_inputs is None:
        psum_inputs = instruction.psum_inputs
    if instruction.opcode == BARRIER:
        return 0.0
    return _cycles(instruction, engine, hardware, psum_inputs) / hardware.clocks[engine]


def _cycles(i: TracedInstruction, engine: str, hardware: Hardware, psum_inputs: int) -> float:
    least, n, cost = hardware.min_cycles, float(i.free), opcode_cost(i.opcode)
    if engine == TENSOR:
        return _matmul(i, hardware)
    if engine == GPSIMD:
        return hardware.gpsimd_overhead + n * cost.gpsimd
    if engine == SCALAR:
        return max(least, n) + cost.scalar + hardware.scalar_overhead
    match cost.vector:
        case "pair":
            factor = 1.0 if psum_inputs == 1 else hardware.pair_cycles
        case "two":
            factor = 2.0
        case "reciprocal":
            factor = hardware.reciprocal_cycles
        case "quotient":
            factor = hardware.reciprocal_cycles + 2.0
        case "triples":
            factor = 13.0 / 3.0
        case "blocks" if max(i.partitions, i.free) > 32:
            blocks = -(-i.partitions // 32) * -(-i.free // 32)
            return blocks * hardware.vector_transpose_cycles + hardware.vector_overhead
        case "fill":
            factor = 0.5 if i.itemsize == 2 else 1.0
        case _:
            factor = 1.0
    return max(least, factor * n / _bf16_speedup(i, hardware)) + hardware.vector_overhead


def _bf16_speedup(i: TracedInstruction, hardware: Hardware) -> float:
    """Return how much faster VectorE is where every tile of an instruction has elements of two bytes."""
    narrow = opcode_cost(i.opcode).narrow
    place = bf16_place(i) if narrow else None
    if narrow == "pair":
        return hardware.bf16_pair_speedup if place is MemorySpace.SBUF and i.psum_inputs == 0 else 1.0
    if place is None:
        return 1.0
    return hardware.bf16_copy_speedup if place is MemorySpace.SBUF else hardware.bf16_copy_speedup_psum


def bf16_place(i: TracedInstruction) -> MemorySpace | None:
    """Return where the tiles of an instruction lie if all have elements of two bytes, PSUM if one of them does; None
    for wider ones. Columns of one element per partition do not count."""
    place = MemorySpace.SBUF
    for block, _ in (*i.reads, *i.writes):
        elements = prod(block.shape[1:])
        if elements > 1 and block.free_bytes != 2 * elements:
            return None
        if block.memory is not MemorySpace.SBUF:
            place = MemorySpace.PSUM
    return place if i.writes else None


def _matmul(i: TracedInstruction, hardware: Hardware) -> float:
    passes, overhead = 1.0, hardware.matmul_overhead
    if i.itemsize >= 4:
        passes = hardware.fp32_onezero_passes if i.transpose and i.onezero else hardware.fp32_passes
        overhead = hardware.fp32_overhead
    columns = max(min(hardware.min_cycles, float(i.stationary)), float(i.free))
    return passes * (columns + overhead)


def dma_ns(size: int, descriptors: int, hardware: Hardware, compiler: Compiler) -> float:
    """Return the nanoseconds that a transfer of ``size`` bytes occupies all DMA queues together: its bytes, and a
    fixed cost for each contiguous piece of at most ``piece_bytes``; at least what it takes to issue one, on as many
    queues as it has pieces where descriptors are not generated."""
    pieces = max(descriptors, size / hardware.piece_bytes)
    moved = size / hardware.dma_gbps + pieces * hardware.descriptor_ns / hardware.dma_queues
    share = 1.0 if compiler.generates_descriptors else min(1.0, descriptors / hardware.dma_queues)
    return max(moved, hardware.transfer_ns * share)


def tell_versions_apart(steps: list[ScheduledStep]) -> None:
    """Give each value of a tile in SBUF that was used before it is overwritten a block of its own."""
    current: dict[BlockInfo, BlockInfo] = {}
    used: set[BlockInfo] = set()
    for step in steps:
        if current:
            step.reads = [(current.get(block, block), box) for block, box in step.reads]
        read = {block for block, _ in step.reads}
        used |= read
        written: list[Region] = []
        for block, box in step.writes:
            now = current.get(block, block)
            if (
                block.memory is MemorySpace.SBUF
                and now in used
                and now not in read
                and is_whole(box, block.shape)
            ):
                now = current[block] = _copy(block)
            written.append((now, box))
        step.writes = written


def _copy(block: BlockInfo) -> BlockInfo:
    copy = BlockInfo(
        block.ident,
        block.memory,
        shape=block.shape,
        itemsize=1,
        name=block.name,
        line=block.line,
        constant=block.constant,
    )
    copy.free_bytes = block.free_bytes
    return copy
