"""Lists the strategies that the study compares, with their settings and proposal sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Contender:
    """A strategy with its settings. ``rules`` is the share of the rule catalogue that is asked (drawn anew for each
    seed), ``memory`` whether what was found on the other kernels is remembered, ``proposer`` whether the simulated
    proposer is asked; ``samples`` are its tries per plan."""

    name: str
    strategy: str
    rules: float = 0.0
    memory: bool = False
    proposer: bool = True
    samples: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


#: Goes on asking whatever a call brings, so that all contenders run until they are there.
_TIRELESS = {"least_gain": -1.0}

HYBRID, BEAM, TREE = "hybrid", "beam (AccelOpt: B6 N12 K2 T16)", "tree (STARK)"

CONTENDERS: tuple[Contender, ...] = (
    Contender(HYBRID, "hybrid", rules=1.0, options=_TIRELESS),
    Contender(f"{HYBRID} with memory", "hybrid", rules=1.0, memory=True, options=_TIRELESS),
    Contender(f"{HYBRID}, half the rules", "hybrid", rules=0.5, options=_TIRELESS),
    Contender(f"{HYBRID}, no proposer", "hybrid", rules=1.0, proposer=False),
    Contender(f"{HYBRID}, no rules", "hybrid", options=_TIRELESS),
    Contender(f"{HYBRID}, no rules, with memory", "hybrid", memory=True, options=_TIRELESS),
    Contender(BEAM, "beam", samples=2),
    Contender("beam with the rules", "beam", rules=1.0, samples=2),
    Contender(TREE, "tree"),
    Contender("tree with the rules", "tree", rules=1.0),
    Contender("reflexion", "reflexion"),
    Contender("sampling", "sampling"),
)
