"""Map lines through edits of a text, so that results stay beside the code they are about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import Finding, KernelMeasurement


@dataclass(frozen=True)
class TextChange:
    """A part of a text replaced by ``text``: from ``start_column`` of ``start_line`` to ``end_column`` of ``end_line``,
    all 0-based. Columns only tell where a change begins and ends at the same place or at the start of a line."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class _Move:
    """Old lines ``start``..``end`` (1-based, both included) were edited; lines after ``end`` moved by ``by``."""

    start: int
    end: int
    by: int
    whole_lines: bool = False  # the edit only put whole lines in before ``start``: no old line was changed


@dataclass(frozen=True)
class LineMap:
    """Old line numbers to new ones, through one or more edits in the order they were made."""

    moves: tuple[_Move, ...] = ()
    everything: bool = False  # the whole text was replaced: nothing is known about single lines

    @classmethod
    def shift(cls, by: int) -> LineMap:
        """Return the map that moves all lines by ``by``."""
        return cls((_Move(1, 0, by),)) if by else cls()

    @classmethod
    def of(cls, changes: Sequence[TextChange | None]) -> LineMap:
        """Return the map of several changes, made one after the other; None stands for a new text as a
        whole."""
        moves = []
        for change in changes:
            if change is None:
                return cls(everything=True)
            start, end = change.start_line, change.end_line
            by = change.text.count("\n") - (end - start)
            empty = (start, change.start_column) == (end, change.end_column)
            whole = empty and change.start_column == 0 and change.text.endswith("\n")
            moves.append(_Move(start + 1, start if whole else end + 1, by, whole))
        return cls(tuple(moves))

    @property
    def moves_lines(self) -> bool:
        """Whether a line may have another number now: not where as many lines were put in as taken out."""
        return any(move.by for move in self.moves)

    def line(self, line: int) -> int:
        """Return where the old ``line`` is now; a line that an edit swallowed goes to the edit's first
        line."""
        for move in self.moves:
            if line > move.end:
                line += move.by
            elif line > move.start:
                line = min(line, max(move.start, move.end + move.by))
        return max(line, 1)

    def touches(self, first: int, last: int) -> bool:
        """Return whether an edit changed anything in the old lines ``first``..``last``, or put lines between
        them."""
        if self.everything:
            return True
        for move in self.moves:
            if move.whole_lines:
                if first < move.start <= last:
                    return True
            elif move.start <= last and move.end >= first:
                return True
            first, last = LineMap((move,)).line(first), LineMap((move,)).line(last)
        return False


def move_kernel(kernel: Kernel, moved: LineMap) -> Kernel:
    if not moved.moves_lines:
        return kernel
    return replace(
        kernel,
        line=moved.line(kernel.line),
        first_line=moved.line(kernel.first_line),
        end_line=moved.line(kernel.end_line),
    )


#: "line 12" in a sentence about the same file; after ``FILE, `` it is a line of that one.
_NAMED = re.compile(r"(?<!, )\bline (\d+)\b")


def move_text(text: str, moved: LineMap) -> str:
    """Return a sentence with the lines that it names where they are now."""
    return _NAMED.sub(lambda match: f"line {moved.line(int(match[1]))}", text)


def move_findings(findings: Iterable[Finding], moved: LineMap) -> list[Finding]:
    if not moved.moves_lines:
        return list(findings)
    return [replace(f, line=moved.line(f.line), message=move_text(f.message, moved)) for f in findings]


def move_measurement(result: KernelMeasurement, moved: LineMap) -> KernelMeasurement:
    if not moved.moves_lines:
        return result
    return replace(
        result,
        line=moved.line(result.line),
        lines=[
            replace(cost, line=moved.line(cost.line), text=move_text(cost.text, moved))
            for cost in result.lines
        ],
        findings=move_findings(result.findings, moved),
        timeline=result.timeline and result.timeline.with_lines(moved.line),
    )
