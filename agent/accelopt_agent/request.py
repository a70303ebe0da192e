"""The input of a search: the file, the target, the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_profiling.examination import rewritten
from accelopt_profiling.jobs import Limits
from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.problems.inference.inferred import InferredProblem, with_problem

#: All proposers, by name.
SOURCES = frozenset({"memory", "rules", "model"})


@dataclass(frozen=True)
class Budget:
    """The limits of a run, whichever is reached first; None is no limit.

    ``candidates`` counts the measured rewrites; ``tokens`` those that a model reads and writes; ``money`` is in the
    currency of the model's configured price. A search ends early when a checked version reaches ``percent_of_peak``.
    """

    candidates: int = 60
    seconds: float | None = 300.0
    tokens: int | None = 200_000
    money: float | None = None
    percent_of_peak: float | None = None


@dataclass(frozen=True)
class LessonLimits:
    """``most`` lessons are written at the end of a kernel's search, 0 for none: about versions that were checked and
    are at least ``gain`` times as fast as the original, and about versions at least ``loss`` times as slow as the one
    that they were made from. The defaults are AccelOpt's."""

    most: int = 8
    gain: float = 1.04
    loss: float = 1.15


#: How many rewrites a strategy composes unless said otherwise: in an editor somebody waits for ``hybrid``.
DEPTHS, LONG = {"hybrid": 6}, 16


@dataclass(frozen=True)
class SearchPlan:
    """How to search.

    ``sources`` are the proposers that may be asked, ``options`` those of ``strategy`` (``strategies.OPTIONS``),
    ``depth`` how many rewrites are composed at most (None: as is usual for the strategy), ``experience`` the policy by
    which the memory tells a model of like kernels (``experience/policies.json``), ``lessons`` which of its versions the
    summarizer writes about. ``parallel`` versions are measured at a time, ``calls`` proposers queried.
    """

    strategy: str = "hybrid"
    sources: frozenset[str] = SOURCES
    depth: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    experience: str = "ours"
    lessons: LessonLimits = LessonLimits()
    parallel: int = 2
    calls: int = 2
    seed: int = 0

    @property
    def composed(self) -> int:
        """How many rewrites are composed at most."""
        return self.depth or DEPTHS.get(self.strategy, LONG)

    def __str__(self) -> str:
        """The plan as one line, the same for the same plan: a result's key holds it."""
        options = ", ".join(f"{name} {value}" for name, value in sorted(self.options.items()))
        sources = ", ".join(sorted(self.sources))
        return f"{self.strategy} {self.depth} ({options}) {sources}; experience {self.experience}"


@dataclass(frozen=True)
class Repetition:
    """A version to make again: of the steps of ``suggestion`` those that are ``kept``, counted from 0."""

    suggestion: Suggestion
    kept: tuple[int, ...]

    @classmethod
    def of(cls, suggestion: Suggestion) -> Repetition:
        """Return that of all its steps."""
        return cls(suggestion, tuple(range(len(suggestion.way))))

    @property
    def whole(self) -> bool:
        """No step is left out."""
        return len(self.kept) == len(self.suggestion.way)

    @property
    def origins(self) -> tuple[str, ...]:
        """Who made the steps that are kept."""
        if self.whole:
            return self.suggestion.steps
        return tuple(origin for number in self.kept for origin in self.suggestion.way[number].origins)


@dataclass(frozen=True)
class OptimizeRequest:
    """A search for faster versions of ``kernel`` in ``file``, for ``target``.

    ``kernel`` None means every launched kernel of the file, the costliest first. ``inferred`` are problems for a file
    that has none, each for the kernels that it launches. ``resume`` takes over what earlier searches paid for under the
    same conditions (``search.paid``). ``limits`` hold for each step of a job. ``checked`` says that the gate has
    accepted the original already, so that it is not checked again before the search. With a ``repetition`` that one
    version is made and checked, and nothing else.
    """

    file: KernelSource
    target: str
    kernel: str | None = None
    inferred: tuple[InferredProblem, ...] = ()
    budget: Budget = field(default_factory=Budget)
    plan: SearchPlan = field(default_factory=SearchPlan)
    limits: Limits = Limits()
    instructions: str = ""
    resume: bool = False
    checked: bool = False
    repetition: Repetition | None = None

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def text(self) -> str:
        return self.file.text

    def problem_of(self, kernel: str | None) -> InferredProblem | None:
        """Return the inferred problem that launches ``kernel``, the first where none does; None for files with their
        own."""
        first = self.inferred[0] if self.inferred else None
        return next((p for p in self.inferred if kernel in p.launched), first)

    def kernel_file(self, text: str | None = None, kernel: str | None = None) -> KernelSource:
        """Return the file with the problem for ``kernel``; with ``text``, that of another version in its place."""
        file = self.file if text is None else rewritten(self.file, text)
        problem = self.problem_of(kernel)
        return file if problem is None else with_problem(file, problem)
