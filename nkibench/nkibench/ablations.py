"""Defines the ablations: the same search with one part of the agent left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accelopt_agent.model.team import ModelTeam
from accelopt_agent.request import SOURCES, SearchPlan


@dataclass(frozen=True)
class Ablation:
    """A named search in which only ``sources`` of a plan propose, with another ``strategy`` where one is named.

    ``alone`` puts one agent in the place of the team.
    """

    name: str
    sources: frozenset[str] = SOURCES
    strategy: str | None = None
    alone: bool = False

    @property
    def file_name(self) -> str:
        return self.name.replace(" ", "-")

    def of(self, plan: SearchPlan) -> SearchPlan:
        """Return ``plan`` without what is left out. Options of another strategy do not go with it."""
        sources = plan.sources & self.sources
        experience = plan.experience if "memory" in self.sources else "none"
        if self.strategy is None or self.strategy == plan.strategy:
            return replace(plan, sources=sources, experience=experience)
        return replace(plan, sources=sources, experience=experience, strategy=self.strategy, options={})

    def team_of(self, team: ModelTeam | None) -> ModelTeam | None:
        return replace(team, alone=True) if team is not None and self.alone else team


#: Nothing left out; the search with memory and rules but no model; the team with no search, in one chain of answers
#: built on or repaired from the last; everything but the memory; and what STARK calls search only and sampling: the
#: same search with one agent in the place of the team, and one agent that is asked about the original again and again.
ABLATIONS: tuple[Ablation, ...] = (
    Ablation("everything"),
    Ablation("search only", SOURCES - {"model"}),
    Ablation("team only", frozenset({"model"}), "reflexion"),
    Ablation("no memory", SOURCES - {"memory"}),
    Ablation("one agent", alone=True),
    Ablation("sampling", frozenset({"model"}), "sampling", alone=True),
)


def searches(names: Sequence[str], everything: bool, plan: SearchPlan) -> tuple[Ablation | None, ...]:
    """Return the ablations of these names, or all that leave ``plan`` somebody who proposes; one plain search (None)
    where none is asked for."""
    ablations = [a for a in ABLATIONS if everything or a.name in names]
    return tuple(a for a in ablations if a.of(plan).sources) or (None,)
