"""Defines the ablations: the same search with one part of the agent left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accelopt_agent.request import SOURCES
from accelopt_agent.search.plan import SearchPlan


@dataclass(frozen=True)
class Ablation:
    """A named search in which only ``sources`` of a plan propose, with another ``strategy`` where one is named."""

    name: str
    sources: frozenset[str] = SOURCES
    strategy: str | None = None

    @property
    def file_name(self) -> str:
        return self.name.replace(" ", "-")

    def of(self, plan: SearchPlan) -> SearchPlan:
        """Return ``plan`` without what is left out. Options of another strategy do not go with it."""
        sources = plan.sources & self.sources
        if self.strategy is None or self.strategy == plan.strategy:
            return replace(plan, sources=sources)
        return replace(plan, sources=sources, strategy=self.strategy, options={})


#: Nothing left out; the search with memory and rules but no team; the team with no search, in one chain of answers
#: built on or repaired from the last; and everything but the memory.
ABLATIONS: tuple[Ablation, ...] = (
    Ablation("everything"),
    Ablation("search only", SOURCES - {"model"}),
    Ablation("team only", frozenset({"model"}), "reflexion"),
    Ablation("no memory", SOURCES - {"memory"}),
)


def searches(names: Sequence[str], everything: bool) -> tuple[Ablation | None, ...]:
    """Return the ablations of these names, or all; one plain search (None) where none is asked for."""
    return tuple(a for a in ABLATIONS if everything or a.name in names) or (None,)
