"""Instructions with the source lines they come from, and their counts by class, by line and by loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Instruction:
    """One instruction: its opcode, its class (see ``instruction_classes``) and the user's 1-based source line.

    ``line`` is 0 where the compiler names no line of the user's file. ``loops`` are the names of the loops the
    instruction is in, outermost first. ``bytes`` is what one thread moves in one global memory access, else 0.
    """

    opcode: str
    kind: str
    line: int
    loops: tuple[str, ...] = ()
    bytes: int = 0


@dataclass(frozen=True)
class Loop:
    """One loop of the compiled code: the line of its ``for`` or ``while``, its depth (outermost 1) and the number of
    instructions of each class in one iteration of its body, those of inner loops left out.

    The compiler may have unrolled a source loop (then it is missing here, or an iteration stands for several).
    """

    line: int
    depth: int
    counts: dict[str, int]


@dataclass(frozen=True)
class Listing:
    """A kernel's instructions in order.

    ``loop_lines`` gives a loop's source line by the loop's name. ``inlined`` says for a position in any file
    ("standard.py:170") from which lines of the user's file the code there was inlined. ``misplaced`` says which line
    instructions of a class belong to that the assembler was told to be on another (see ``source_positions``).
    """

    instructions: tuple[Instruction, ...]
    loop_lines: dict[str, int] = field(default_factory=dict)
    inlined: dict[str, frozenset[int]] = field(default_factory=dict)
    misplaced: dict[tuple[str, int], int] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """How many instructions of each class the kernel has (static: a loop's body counts once)."""
        return _count(self.instructions)

    def by_line(self) -> dict[int, dict[str, int]]:
        """The same for each source line; line 0 holds what the compiler gives no line for."""
        lines: dict[int, list[Instruction]] = {}
        for instruction in self.instructions:
            lines.setdefault(instruction.line, []).append(instruction)
        return {line: _count(found) for line, found in sorted(lines.items())}

    def access_bytes(self) -> dict[int, int]:
        """For each source line the widest global memory access of one thread, in bytes."""
        widest: dict[int, int] = {}
        for instruction in self.instructions:
            if instruction.bytes and instruction.line:
                widest[instruction.line] = max(widest.get(instruction.line, 0), instruction.bytes)
        return widest

    def loops(self) -> list[Loop]:
        """The loops in order of their lines; loops that only wait for a barrier are left out."""
        bodies: dict[tuple[str, ...], list[Instruction]] = {}
        for instruction in self.instructions:
            if instruction.loops:
                bodies.setdefault(instruction.loops, []).append(instruction)
        found = []
        for nest, body in bodies.items():
            counts = _count(body)
            if not set(counts) <= {"barrier", "wait", "branch", "other"}:
                line = self.loop_lines.get(nest[-1], 0) or min((i.line for i in body if i.line), default=0)
                found.append(Loop(line, len(nest), counts))
        return sorted(found, key=lambda loop: (loop.line, loop.depth))


def _count(instructions: Iterable[Instruction]) -> dict[str, int]:
    return dict(sorted(Counter(instruction.kind for instruction in instructions).items()))
