"""Known mistakes of a dialect, told only where one is near."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from accelopt_profiling.measurement import Dialect

#: How many are told at most.
MOST_TOLD = 3


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
    """Those that ``texts`` (a plan, the planned lines, an error) come near to most often, at most ``MOST_TOLD``."""
    everything = "\n".join(texts)
    counts = [
        (len(re.findall(m.near, everything, re.IGNORECASE)), m) for m in mistakes() if m.dialect == dialect
    ]
    near = sorted((c for c in counts if c[0]), key=lambda c: -c[0])
    return [m for _, m in near[:MOST_TOLD]]


def told(found: list[Mistake]) -> str:
    """As a Markdown list with its head, to be put into a prompt; empty where there are none."""
    return "Take care:\n" + "\n".join(f"- {m.text}" for m in found) + "\n\n" if found else ""
