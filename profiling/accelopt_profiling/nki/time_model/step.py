"""The steps of a schedule: an instruction of the trace each, or a transfer that the compiler adds."""

from __future__ import annotations

from accelopt_profiling.nki.data.instruction import DMA, SCALAR, BlockInfo, Region, TracedInstruction
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.time_model.costs import bf16_place, dma_ns, engine_ns
from accelopt_profiling.nki.time_model.hardware import Compiler, Hardware

#: Opcodes of transfers that are not in the kernel's text.
SPILL, RELOAD = "spill", "reload"


class ScheduledStep:
    """One piece of work for one engine.

    ``number`` is the instruction's position in the trace; a transfer that was added has that of the instruction it
    is for. ``after`` is the position of the step whose end frees the room that this one needs, or -1. ``loads`` tells
    that a transfer goes to the chip. Inputs are not among ``reads``: they are always there. ``key`` is equal for steps
    that cost the same on the same line; ``psum_inputs`` are operands that lie in PSUM once the compiler is done.
    """

    __slots__ = (
        "accumulate", "after", "bytes", "descriptors", "engine", "instruction", "key", "line", "loads", "number",
        "opcode", "psum_inputs", "reads", "writes",
    )  # fmt: skip

    instruction: TracedInstruction | None

    def __init__(self, opcode: str, line: int, number: int, engine: str) -> None:
        self.opcode, self.line, self.number, self.engine = opcode, line, number, engine
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
        if i.opcode == "tensor_scalar" and self.compiler.scalar_first and SCALAR in i.engines:
            engine = SCALAR
        step = ScheduledStep(i.opcode, i.line, number, engine)
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
            kind: tuple[object, ...] = (step.opcode, step.line, step.bytes, step.descriptors)
        else:
            kind = (
                step.opcode, step.line, step.engine, i.free, i.itemsize, step.psum_inputs, i.onezero, i.stationary,
                i.transpose, i.accumulate, len(step.reads), bf16_place(i),
            )  # fmt: skip
        key = self._keys.setdefault(kind, len(self._examples))
        if key == len(self._examples):
            self._examples.append(step)
        step.key = key

    def transfer(self, opcode: str, block: BlockInfo, number: int, share: float = 1.0) -> ScheduledStep:
        """Return a spill or a reload of a tile, or of the ``share`` of it that is needed."""
        step = ScheduledStep(opcode, block.line, number, DMA)
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
            dma_ns(step.bytes, step.descriptors, hardware)
            if step.engine == DMA or step.instruction is None
            else engine_ns(step.instruction, step.engine, hardware, step.psum_inputs)
            for step in self._examples
        ]
