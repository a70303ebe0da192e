"""Describes a rewrite as a planner and a coder do: the lines to change, and their new text."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from accelopt_agent.candidate import Candidate
from accelopt_agent.model.edits import Anchor
from accelopt_agent.syntax.lines import split_lines


@dataclass(frozen=True)
class Edit:
    """``plan`` names the ``anchors`` in ``before``.

    ``changes`` are the lines that they become, ``after`` the file.
    """

    plan: str
    before: str
    after: str
    anchors: tuple[Anchor, ...]
    changes: tuple[tuple[str, ...], ...]

    @property
    def answer(self) -> str:
        """The coder's answer."""
        return told(self.changes)


def told(changes: tuple[tuple[str, ...], ...]) -> str:
    """Return what each place becomes, as coders answer."""
    parts = []
    for number, lines in enumerate(changes, 1):
        body = "\n".join(lines)
        parts.append(f"<<<<<<< CHANGE {number}\n{body}\n>>>>>>>")
    return "\n".join(parts)


def edit_of(before: str, candidate: Candidate) -> Edit:
    """Return ``candidate`` as an edit of the file ``before``."""
    return edited(before, candidate.text, f"{candidate.summary} {_costs(candidate.expects)}")


def edited(before: str, after: str, plan: str) -> Edit:
    """Return the difference of two files as an edit. ``plan`` is the plan in words."""
    old, new = split_lines(before).texts, split_lines(after).texts
    places: list[tuple[int, int, int, int]] = []
    for tag, low, high, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if tag == "insert" and low:  # after the line before it, which is repeated
            low, start = low - 1, start - 1
        elif tag == "insert":
            high, end = high + 1, end + 1
        if places and places[-1][1] >= low:  # side by side they are one place
            low, start = places[-1][0], places.pop()[2]
        places.append((low, high, start, end))
    anchors = tuple(Anchor(low + 1, high) for low, high, _, _ in places)
    changes = tuple(new[start:end] for _, _, start, end in places)
    ranges = ", ".join(f"{a.first}-{a.last}" for a in anchors)
    return Edit(f"LINES {ranges}\n{plan}", before, after, anchors, changes)


def _costs(expects: Mapping[str, str]) -> str:
    costs = ", ".join(f"{name} goes {way}" for name, way in expects.items())
    return f"{costs.capitalize()}, because the same result is reached with less of it."
