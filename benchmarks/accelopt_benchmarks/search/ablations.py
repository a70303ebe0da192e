"""Defines the ablations: the same search with one part of the agent left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accelopt_agent.request import SOURCES, SearchPlan
from accelopt_benchmarks.search.comparators import REFLEXION, SAMPLING
from nkibench.searching import SearchVariant


@dataclass(frozen=True)
class Ablation:
    """A search in which only ``sources`` of a plan propose.

    ``strategy`` takes the place of the plan's where one is named; ``alone`` puts one agent in the place of the team.
    """

    name: str
    sources: frozenset[str] = SOURCES
    strategy: str | None = None
    alone: bool = False

    def of(self, plan: SearchPlan) -> SearchVariant:
        """Return ``plan`` without what is left out. Options of another strategy do not go with it."""
        experience = plan.experience if "memory" in self.sources else "none"
        rest = replace(plan, sources=plan.sources & self.sources, experience=experience)
        if self.strategy is not None:
            rest = replace(rest, strategy=self.strategy, options={})
        return SearchVariant(rest, self.name, self.alone)


#: Nothing left out; the search with memory and rules but no model; the team with no search, in one chain of answers
#: built on or repaired from the last; everything but the memory; and what STARK calls search only and sampling: the
#: same search with one agent in the place of the team, and one agent that is asked about the original again and again.
ABLATIONS: tuple[Ablation, ...] = (
    Ablation("everything"),
    Ablation("search only", SOURCES - {"model"}),
    Ablation("team only", frozenset({"model"}), REFLEXION),
    Ablation("no memory", SOURCES - {"memory"}),
    Ablation("one agent", alone=True),
    Ablation("sampling", frozenset({"model"}), SAMPLING, alone=True),
)


def variants(names: Sequence[str], everything: bool, plan: SearchPlan) -> tuple[SearchVariant, ...]:
    """Return the ablations of these names, or all, that leave ``plan`` somebody who proposes."""
    ablations = [a.of(plan) for a in ABLATIONS if everything or a.name in names]
    return tuple(variant for variant in ablations if variant.plan.sources)
