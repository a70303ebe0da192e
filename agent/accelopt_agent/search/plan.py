"""Describes how to search as one object: who proposes, which strategy chooses, with which options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from accelopt_agent.request import SOURCES, LessonLimits, OptimizeRequest

#: How many rewrites a strategy composes unless said otherwise: in an editor somebody waits for ``hybrid``.
DEPTHS, LONG = {"hybrid": 6}, 16


@dataclass(frozen=True)
class SearchPlan:
    """``sources`` are the proposers that may be asked, ``options`` those of ``strategy`` (``strategies.OPTIONS``),
    ``depth`` how many rewrites are composed at most (None: as is usual for the strategy), ``experience`` the policy by
    which the memory tells a model of like kernels, ``lessons`` what it learns in words."""

    strategy: str = "hybrid"
    sources: frozenset[str] = SOURCES
    depth: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    experience: str = "ours"
    lessons: LessonLimits = field(default_factory=LessonLimits)

    def of(self, request: OptimizeRequest) -> OptimizeRequest:
        """Return ``request``, searched in this way."""
        return replace(
            request,
            strategy=self.strategy,
            sources=self.sources,
            depth=self.depth or DEPTHS.get(self.strategy, LONG),
            strategy_options=dict(self.options),
            experience=self.experience,
            lessons=self.lessons,
        )

    def __str__(self) -> str:
        """The plan as one line, the same for the same plan: a result's key holds it."""
        options = ", ".join(f"{name} {value}" for name, value in sorted(self.options.items()))
        sources = ", ".join(sorted(self.sources))
        return f"{self.strategy} {self.depth} ({options}) {sources}; experience {self.experience}"
