"""Known mistakes of a dialect, told only where one is near."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from accelopt_profiling.measurement import Dialect

#: How many are told at most.
MOST_TOLD = 2


@dataclass(frozen=True)
class Mistake:
    """``near`` is a regular expression for what makes it likely; ``source`` says where the rule is written."""

    dialect: Dialect
    near: str
    text: str
    source: str


@cache
def mistakes() -> tuple[Mistake, ...]:
    data = json.loads(resources.files(__package__).joinpath("mistakes.json").read_text("utf-8"))
    return tuple(Mistake(**entry) for entry in data["mistakes"])


def near_mistakes(dialect: Dialect, *texts: str) -> list[Mistake]:
    """Those that ``texts`` (the planned lines, a plan, an error) come near to, at most ``MOST_TOLD``: before others
    what the last text comes near to, since that says what is about to be done, then what all do most often."""
    counts = [
        ([len(re.findall(m.near, text, re.IGNORECASE)) for text in texts], m)
        for m in mistakes() if m.dialect == dialect
    ]  # fmt: skip
    near = sorted((c for c in counts if any(c[0])), key=lambda c: (-c[0][-1], -sum(c[0])))
    return [m for _, m in near[:MOST_TOLD]]


def told(found: list[Mistake]) -> str:
    """As a Markdown list with its head, to be put into a prompt; empty where there are none."""
    return "Take care:\n" + "\n".join(f"- {m.text}" for m in found) + "\n\n" if found else ""
