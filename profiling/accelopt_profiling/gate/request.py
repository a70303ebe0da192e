"""A request for a check: the candidate, the original, the problem, and the cases to check on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from accelopt_profiling.jobs import Limits, Source
from accelopt_profiling.problems.ref import ProblemRef

#: "numpy" is plain Python on NumPy arrays, as references are; nothing is emulated for it.
GateDialect = Literal["triton", "nki", "numpy"]


@dataclass(frozen=True)
class Case:
    """One set of inputs. ``seed`` is known to the process that draws and to nobody else until the verdict.

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
    """Options of a check. ``distributions`` names the probes of values, None for all; the original values are always
    run. ``seeds`` counts fresh draws of them; ``shapes`` bounds how many of the problem's further shapes are tried.

    Values are more than shapes can bring out at any size, so when the main inputs are larger than ``large_bytes`` the
    other distributions and draws use the largest further shape that is not. ``input_bytes`` bounds the inputs of all
    cases together, ``result_bytes`` what the reference returns for them, of which the steps keep four times as much in
    files: later cases that would go beyond are left out, and the verdict says so.
    ``interpret_work`` is what interpreting the first Triton case whole may take, in elements (see
    ``interpreter.work``), before only some of its programs are; the others may take a quarter. ``repeats`` bounds the
    further calls on data that was seen before, and ``repeat_work`` what they take in all, in interpreted elements;
    three are made in any case. ``reading`` lets what the candidate's text says refuse it; the gate's own tests do
    without, to see what the run finds by itself.
    """

    distributions: Sequence[str] | None = None
    seeds: int = 2
    shapes: int = 4
    large_bytes: int = 8 << 20
    input_bytes: int = 512 << 20
    result_bytes: int = 7 << 29
    interpret_work: int = 4_000_000_000
    repeats: int = 24
    repeat_work: int = 100_000_000
    reading: bool = True


@dataclass(frozen=True)
class GateRequest:
    """``candidate`` and ``original`` are whole sources (see ``KernelFile.source``) with the same kernel path;
    the problem's functions come from ``original`` alone. ``kernel`` is the kernel that was rewritten. ``limits`` hold
    for the candidate, their ``seconds`` for each of its cases; all cases together get ``ALL_CASES`` times as long,
    the problem's own steps as long as that, and ``PROBLEM_SECONDS`` at least. ``kernel`` may be "":
    then any kernel of the candidate will do. ``cases`` are those of an earlier check that is to be repeated.
    """

    candidate: Source
    original: Source
    problem: ProblemRef
    kernel: str
    dialect: GateDialect
    target: str
    limits: Limits = Limits()
    options: CaseOptions = field(default_factory=CaseOptions)
    cases: list[Case] = field(default_factory=list)
