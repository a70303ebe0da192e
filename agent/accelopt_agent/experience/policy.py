"""The policies by which experience is chosen, as data: ours, and those of others for comparisons."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from accelopt_profiling.plain import from_plain

#: "expected": by similarity times expected gain; "newest": the last pairs; "resampled": the last pairs and a random
#: sample of those before them, again with every round.
Pick = Literal["expected", "newest", "resampled", "nothing"]


@dataclass(frozen=True)
class ExperiencePolicy:
    """How many ``items`` and ``failures`` are chosen, and how. ``tokens`` bounds their text (None: no bound);
    ``least_gain`` is the speedup below which a pair teaches nothing; ``round`` is how many pairs come in at once."""

    pick: Pick
    items: int
    failures: int
    tokens: int | None
    least_gain: float = 1.0
    round: int = 8
    what: str = ""


@cache
def policies() -> dict[str, ExperiencePolicy]:
    """Return the policies by name."""
    data = json.loads(resources.files(__package__).joinpath("policies.json").read_text("utf-8"))
    return {name: from_plain(ExperiencePolicy, entry) for name, entry in data.items()}


def policy_named(name: str) -> ExperiencePolicy:
    """Return the policy ``name``. Raises ValueError: there is none, with the names that there are."""
    known = policies()
    if name not in known:
        raise ValueError(f"There is no experience policy {name!r}; there are {', '.join(known)}.")
    return known[name]
