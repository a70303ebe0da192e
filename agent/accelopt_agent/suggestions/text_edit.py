"""Edits of a text by positions, as an editor applies them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_agent.syntax.lines import split_lines


@dataclass(frozen=True)
class TextEdit:
    """Replace the text from start to end. Lines and columns are 0-based, columns count code points."""

    start_line: int
    start_col: int
    end_line: int
    end_col: int
    new_text: str


@dataclass(frozen=True)
class ApplyRefusal:
    """The reason why a suggestion cannot be applied to the current text, and the person's remedy."""

    reason: str


def apply_to_text(text: str, edits: Sequence[TextEdit]) -> str:
    """Return ``text`` with ``edits`` applied at once, as an editor would: all positions refer to ``text``.

    Raises:
        ValueError: edits overlap or lie outside the text.
    """
    lines = split_lines(text)
    starts = [0]
    for body, end in zip(lines.texts, lines.ends, strict=True):
        starts.append(starts[-1] + len(body) + len(end))

    def offset(line: int, column: int) -> int:
        if not (0 <= line < len(lines.texts) and 0 <= column <= len(lines.texts[line])):
            raise ValueError(f"position {line}:{column} lies outside the text")
        return starts[line] + column

    spans = sorted(
        (offset(e.start_line, e.start_col), offset(e.end_line, e.end_col), e.new_text) for e in edits
    )
    parts: list[str] = []
    at = 0
    for first, last, new in spans:
        if first < at or last < first:
            raise ValueError("edits overlap")
        parts += [text[at:first], new]
        at = last
    return "".join([*parts, text[at:]])
