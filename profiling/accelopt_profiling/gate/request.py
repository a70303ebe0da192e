"""A request for a check: the candidate, the original, the problem, and the cases to check on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.jobs import JobFiles, Limits
from accelopt_profiling.problems.ref import ProblemRef

#: "numpy" is plain Python on NumPy arrays, as references are; nothing is emulated for it.
GateDialect = Literal["triton", "nki", "numpy"]
#: Takes each step of a check, in words, when it begins.
Tell = Callable[[str], None]


def untold(step: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Case:
    """One set of inputs.

    ``seed`` is known to the process that draws and to nobody else until the verdict.

    ``distribution`` names the probe of its values. ``shape_index`` picks one of the problem's further ``shapes``; None
    is the main shape. ``sizes`` names the probe that chooses other sizes, ``number`` is that of the case among the
    probe's; "" keeps the problem's own. A ``movable`` case may be drawn at a further shape instead when the main one is
    large. One that is drawn ``again`` has other values, even where the problem seeds its generators itself. ``alters``
    is the seed of the case whose values this one rearranges.
    """

    name: str
    seed: int
    distribution: str = "original"
    shape_index: int | None = None
    movable: bool = False
    sizes: str = ""
    number: int = 0
    again: bool = False
    alters: int | None = None


@dataclass(frozen=True)
class CaseOptions:
    """Options of a check.

    ``distributions`` names the probes of values, None for all; the original values are always run. ``seeds`` counts
    fresh draws of them; ``shapes`` bounds how many of the problem's further shapes are tried.

    ``budget`` bounds what the check takes. ``reading`` lets what the candidate's text says refuse it; the gate's own
    tests do without, to see what the run finds by itself.
    """

    distributions: Sequence[str] | None = None
    seeds: int = 2
    shapes: int = 4
    budget: GateBudget = field(default_factory=GateBudget)
    reading: bool = True


@dataclass(frozen=True)
class GateRequest:
    """``candidate`` and ``original`` are whole sources (see ``job_files.job_files``) with the same kernel path;
    the problem's functions come from ``original`` alone. ``kernel`` is the kernel that was rewritten. ``limits`` hold
    for the candidate, their ``seconds`` for each of its cases; all cases together get ``GateBudget.all_cases`` times as
    long, the problem's own steps as long as that, and ``GateBudget.problem_seconds`` at least. ``kernel`` may be "":
    then any kernel of the candidate will do. ``cases`` are those of an earlier check that is to be repeated.
    """

    candidate: JobFiles
    original: JobFiles
    problem: ProblemRef
    kernel: str
    dialect: GateDialect
    target: str
    limits: Limits = Limits()
    options: CaseOptions = field(default_factory=CaseOptions)
    cases: list[Case] = field(default_factory=list)
