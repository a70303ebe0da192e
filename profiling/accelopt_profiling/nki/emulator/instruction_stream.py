"""Issues instructions: numbers them, and adds them to the trace and to the recording of a loop."""

from __future__ import annotations

from math import prod

from accelopt_profiling.nki.data.instruction import Trace, TracedInstruction
from accelopt_profiling.nki.emulator.diagnostics import Diagnostics, LoopsTooLongError
from accelopt_profiling.nki.emulator.loop_recorder import LoopRecorder
from accelopt_profiling.nki.emulator.tile import Tile


class InstructionStream:
    """The instructions of one run in program order. ``issued`` counts them; ``record`` adds them to the trace;
    ``core`` is the one that runs now; ``most`` are as many as there may be, 0 for any number."""

    def __init__(
        self, trace: Trace, record: bool, diagnostics: Diagnostics, recorder: LoopRecorder, most: int = 0
    ) -> None:
        self.trace, self.record, self.most = trace, record, most
        self.issued = self.core = 0
        self.newest: TracedInstruction | None = None
        self._diagnostics, self._recorder = diagnostics, recorder

    def emit(self, opcode: str, engines: tuple[str, ...], shaped: Tile) -> TracedInstruction:
        """Issue a new instruction whose cost follows the shape of ``shaped``."""
        shape = shaped.shape
        partitions = shape[0] if shape else 1
        instruction = TracedInstruction(
            opcode, engines, self._diagnostics.line(), partitions, prod(shape[1:])
        )
        instruction.itemsize = shaped.block.dtype.itemsize
        self.issue(instruction)
        return instruction

    def issue(self, instruction: TracedInstruction) -> None:
        """Issue an instruction. Raises LoopsTooLongError."""
        self.issued += 1
        if self.issued == self.most:
            raise LoopsTooLongError
        self.newest = instruction
        instruction.number, instruction.core = self.issued, self.core
        if self.record:
            self.trace.instructions.append(instruction)
        if self._recorder.loops:
            self._recorder.events.append(instruction)
