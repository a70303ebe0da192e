"""Gives each question of a search another line of attack, so that the questions of one round differ."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources

from accelopt_profiling.measurement import Dialect


@cache
def _attacks() -> tuple[tuple[str, str, str], ...]:
    data = json.loads(resources.files(__package__).joinpath("attacks.json").read_text("utf-8"))
    return tuple((a["dialect"], a["bound"], a["text"]) for a in data["attacks"])


def attack(dialect: Dialect, bound: str | None, count: int) -> str:
    """Return the line of attack of the ``count``-th question (from 0) about a version that ``bound`` limits, and what
    the earlier questions were given; in Markdown."""
    own = [(pattern, text) for d, pattern, text in _attacks() if d == dialect]
    fitting = [t for p, t in own if p and re.search(p, bound or "", re.IGNORECASE)]
    ordered = [*fitting, *(t for _, t in own if t not in fitting)]
    before = [ordered[k % len(ordered)] for k in range(max(0, count - 3), count)]
    told = (
        f"Begin with {ordered[count % len(ordered)]}. Another line is welcome where the facts speak for it.\n"
    )
    if before:
        told += "Others were asked to begin with " + "; with ".join(before) + ". Plan something else.\n"
    return told
