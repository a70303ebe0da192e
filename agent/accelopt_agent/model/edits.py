"""Reads the search-and-replace blocks of a coder's answer and applies them to the file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from accelopt_agent.syntax.lines import split_lines


class InvalidAnswerError(ValueError):
    """An answer without edits, or with edits that do not fit the file. The message is one line."""


@dataclass(frozen=True)
class Replacement:
    """Replaces whole lines of the file by others."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


_HEAD = re.compile(r"^\s*<{4,}\s*(SEARCH|ORIGINAL)?\s*$", re.IGNORECASE)
_MIDDLE = re.compile(r"^\s*={4,}\s*$")
_TAIL = re.compile(r"^\s*>{4,}\s*(REPLACE|UPDATED)?\s*$", re.IGNORECASE)
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})[\w+-]*\s*$")

#: More blocks than this is no edit but a model that repeats itself.
MOST_BLOCKS = 64


def has_edits(answer: str) -> bool:
    """Return whether ``answer`` begins a search-and-replace edit."""
    return any(_HEAD.match(line) for line in split_lines(answer).texts)


def read_edits(answer: str) -> list[Replacement]:
    """Read the edits of ``answer``, ignoring text and fences around them.

    A repeated block counts once.

    Raises:
        InvalidAnswerError: there are none, or one is not finished.
    """
    replacements: dict[Replacement, None] = {}
    search: list[str] | None = None
    replace: list[str] | None = None
    for line in split_lines(answer).texts:
        if _HEAD.match(line):
            search, replace = [], None
        elif search is not None and replace is None and _MIDDLE.match(line):
            replace = []
        elif search is not None and replace is not None and _TAIL.match(line):
            replacements.setdefault(Replacement(without_fences(search), without_fences(replace)))
            search = replace = None
        elif search is not None:
            (search if replace is None else replace).append(line)
        if len(replacements) > MOST_BLOCKS:
            raise InvalidAnswerError(f"the answer has more than {MOST_BLOCKS} edits")
    if search is not None:
        raise InvalidAnswerError("the answer ends inside an edit")
    if not replacements:
        raise InvalidAnswerError("the answer holds no edits")
    return list(replacements)


def without_fences(lines: list[str]) -> tuple[str, ...]:
    """Remove the fences that some models put inside a block."""
    if len(lines) >= 2 and _FENCE.match(lines[0]) and _FENCE.match(lines[-1]):
        lines = lines[1:-1]
    return tuple(line.rstrip() for line in lines)


def apply_edits(text: str, edits: list[Replacement]) -> str:
    """Apply all ``edits`` to ``text``; each must match exactly once.

    White space at line ends is ignored, and so is an indent that all lines of a block lack.

    Raises:
        InvalidAnswerError: a block is empty, not in the file, or in it more than once.
    """
    for edit in edits:
        lines = split_lines(text)
        if not any(line.strip() for line in edit.search):
            raise InvalidAnswerError("an edit does not say which lines it changes")
        at, indent = _place(lines.texts, edit.search)
        new = [indent + line if line.strip() else line for line in edit.replace]
        end = lines.ends[at + len(edit.search) - 1]
        bodies = [*lines.texts[:at], *new, *lines.texts[at + len(edit.search) :]]
        ends = [*lines.ends[:at], *[lines.newline] * (len(new) - 1), *([end] if new else [])]
        ends += lines.ends[at + len(edit.search) :]
        text = "".join(body + stop for body, stop in zip(bodies, ends, strict=True))
    return text


def _place(lines: tuple[str, ...], search: tuple[str, ...]) -> tuple[int, str]:
    """Find ``search`` in ``lines``. Return its index and the indent that it lacks there."""
    places = []
    for at in range(len(lines) - len(search) + 1):
        indent = _missing_indent(lines[at : at + len(search)], search)
        if indent is not None:
            places.append((at, indent))
    exact = [place for place in places if not place[1]]
    places = exact or places
    if not places:
        raise InvalidAnswerError(f"an edit changes lines that are not in the file: {_shown(search)}")
    if len(places) > 1:
        raise InvalidAnswerError(f"an edit fits {len(places)} places in the file: {_shown(search)}")
    return places[0]


def _missing_indent(lines: tuple[str, ...], search: tuple[str, ...]) -> str | None:
    indents = set()
    for line, pattern in zip(lines, search, strict=True):
        if not pattern.strip() or not line.strip():
            if pattern.strip() or line.strip():
                return None
            continue
        if not line.rstrip().endswith(pattern):
            return None
        before = line.rstrip()[: len(line.rstrip()) - len(pattern)]
        if before.strip():
            return None
        indents.add(before)
    return indents.pop() if len(indents) == 1 else None


def _shown(search: tuple[str, ...]) -> str:
    first = next(line.strip() for line in search if line.strip())
    return first if len(first) <= 60 else first[:57] + "..."
