"""Reads kernels that differ in a few lines from a file of cases: a base, and for each case what changes.

``=== NAME`` begins a case, ``--- NAME`` a part of it. A part is a text in full or, where it begins with ``@@``, edits
of the base: after each ``@@`` lines that stay (" "), lines that go ("-") and lines that come ("+"). What stays and
what goes is in the base once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class EditCase:
    """``lead`` is what stands before the first part.

    What stands before the first case is one without a name.
    """

    name: str
    lead: str
    parts: dict[str, str]

    def version(self, part: str, base: str) -> str:
        """Return the text of a part, an edit of ``base`` or in full.

        Raises:
            ValueError: the case has no such part, or what it edits is not in the base, or is more than once.
        """
        if part not in self.parts:
            raise ValueError(f"{self.name} has no part {part}")
        try:
            return edited(base, self.parts[part])
        except ValueError as error:
            raise ValueError(f"{self.name}, {part}: {error}") from None

    def fields(self) -> dict[str, str]:
        """Return the lines ``name: value`` of the lead."""
        pairs = (line.partition(": ") for line in self.lead.splitlines())
        return {name: value for name, _, value in pairs}


def read_edit_cases(file: Path) -> list[EditCase]:
    """Return the cases of a file. The first one has no name, and its lead is the base of the others."""
    text = file.read_text(encoding="utf-8")
    _, *parts = re.split(r"^=== (.*)\n", f"=== \n{text}", flags=re.MULTILINE)
    return [
        EditCase(name, *_lead_and_parts(body)) for name, body in zip(parts[::2], parts[1::2], strict=True)
    ]


def _lead_and_parts(body: str) -> tuple[str, dict[str, str]]:
    lead, *parts = re.split(r"^--- (.*)\n", body, flags=re.MULTILINE)
    return lead, dict(zip(parts[::2], parts[1::2], strict=True))


def edited(base: str, part: str) -> str:
    """Return what ``part`` makes of ``base``.

    Raises:
        ValueError: what it edits is not there, or is there more than once.
    """
    if part and not part.startswith("@@\n"):
        return part
    lines = base.splitlines(keepends=True)
    for at, old, new in sorted(_hunks(lines, part), reverse=True):
        lines[at : at + len(old)] = new
    return "".join(lines)


def _hunks(lines: list[str], part: str) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield where each edit is, the lines that stand there and those that come instead."""
    for hunk in re.split(r"^@@\n", part, flags=re.MULTILINE)[1:]:
        marked = [line if line != "\n" else " \n" for line in hunk.splitlines(keepends=True)]
        old, new = ([line[1:] for line in marked if line[0] in kinds] for kinds in (" -", " +"))
        places = [k for k in range(len(lines) - len(old) + 1) if lines[k : k + len(old)] == old]
        if len(places) != 1 or not old:
            raise ValueError(f"this is there {len(places)} times: {''.join(old)!r}")
        yield places[0], old, new
