"""What a probe is: one thing that a check looks for, with everything that belongs to it in one place.

Parts of a probe run in different processes: its inputs are made where the problem's code draws them, its judgement is
passed where no user code runs. A module of probes therefore imports nothing that only one of them has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from accelopt_profiling.comparison.elements import OutputComparison
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.gate.request import Case, GateDialect
from accelopt_profiling.gate.verdict import Reason

if TYPE_CHECKING:
    from accelopt_profiling.gate.candidate_run import CandidateRun
    from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
    from accelopt_profiling.gate.judge.judged_case import JudgedCase
    from accelopt_profiling.gate.step_schemas import CaseVerdict, DrawnCase, RunCase, RunResult
    from accelopt_profiling.problems.loading.sizes import ProblemSizes
    from accelopt_profiling.problems.problem import Call, Problem

Array = np.ndarray[Any, Any]
#: Inputs up to this size are given to the reference once more, to see what kinds of work it does and what it looks at.
COUNTED_BYTES = 4 << 20
#: Inputs, and whether a probe changed anything about them.
Change = tuple[list[Any], bool]


def mixed(seed: int) -> int:
    """Return the seed of what changes inputs, which is not that of their drawing."""
    return seed ^ 0x5DEECE66D


class Probe:
    """``name`` stands in receipts; ``catches`` says in a sentence which candidates it is for.

    A probe of inputs (below) makes cases; any other one looks at what a candidate does with them: it makes further
    calls in the candidate's process, judges their outputs in the judge's, and decides from the evidence of all steps.
    """

    name: ClassVar[str]
    catches: ClassVar[str]
    #: Whether its reasons stand before those of all others.
    leads: ClassVar[bool] = False
    #: Names of the folders that its calls' outputs are saved in, beside a case's ``outputs``.
    folders: ClassVar[tuple[str, ...]] = ()

    def runs(self, run: CandidateRun) -> None:
        """Make further calls, in the candidate's process."""

    def judge(self, case: JudgedCase, actual: list[Leaf]) -> None:
        """Judge the outputs of such calls; ``actual`` are those of the case's first one."""

    def of_case(self, case: AnsweredCase) -> Iterator[Reason]:
        """Yield what speaks against the candidate in one case, besides its outputs."""
        yield from ()

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        """Yield what speaks against the candidate in the run as a whole."""
        yield from ()

    def notes(self, check: AnsweredCheck) -> Iterator[Reason]:
        """Yield what is worth telling about a candidate that is accepted."""
        yield from ()


class Drawing(Protocol):
    """What the drawing process knows of the problem (``steps.draw``). ``first`` are the inputs at the main shape,
    ``size`` their bytes, ``large_bytes`` those up to which inputs are small; ``main`` are the sizes there, smaller than
    the problem's own where those do not fit. ``own_reference`` tells that the reference is not the original kernel,
    ``limits`` are the numbers that the candidate compares sizes with, ``numbers`` values that it may compare data with.
    """

    problem: Problem
    main: ProblemSizes
    first: list[Any]
    size: int
    large_bytes: int
    own_reference: bool
    limits: list[int]
    numbers: list[float]
    dialect: GateDialect
    target: str

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of work that the reference does (``observe.hostwork``)."""

    def is_finite(self, inputs: list[Any]) -> bool:
        """Check whether the reference takes ``inputs``, and gives numbers."""

    def takes(self, sizes: Mapping[str, int]) -> bool:
        """Check whether the problem draws inputs at ``sizes``, small ones, and its reference gives numbers there."""


@dataclass(frozen=True)
class AnsweredCheck:
    """The evidence of a check whose candidate ran: ``run`` is the answer of its process, ``verdicts`` the judge's by
    case.
    """

    evidence: Evidence
    subject: CandidateKernels
    run: RunResult
    verdicts: Mapping[int, CaseVerdict]

    @property
    def launched(self) -> set[str]:
        """The names of the kernels that were launched in any case."""
        return {name for case in self.run.cases for name in case.launched or []}

    @property
    def looked(self) -> bool:
        """Whether launches were observed."""
        return any(case.launched is not None for case in self.run.cases)


@dataclass(frozen=True)
class AnsweredCase:
    """One case of a check: as it was drawn, run and judged."""

    check: AnsweredCheck
    drawn: DrawnCase
    run: RunCase
    verdict: CaseVerdict


class ValueProbe(Probe):
    """One distribution of inputs: how it is made of what the problem draws, and how its results are judged."""

    #: Made for some problems only; of others nobody asks whether it was left out.
    fits_some: ClassVar[bool] = False
    #: Exact by construction: an error on it is none of rounding, and is not drawn again near the limit.
    exact: ClassVar[bool] = False
    #: A candidate has to get right on it what the original does: nobody promised such inputs.
    held_by_original: ClassVar[bool] = False
    #: Drawn where there is another original: alone a candidate need not take such inputs.
    beside_original: ClassVar[bool] = False
    #: Where the reference is not finite nothing is asked.
    finite_alone: ClassVar[bool] = False
    #: The case whose inputs it rearranges, "" where it has its own.
    rearranges: ClassVar[str] = ""
    #: At most so many cases are planned; ``Case.number`` is that of each.
    most: ClassVar[int] = 1
    #: A candidate may raise where the original does not: it says so itself.
    may_raise: ClassVar[bool] = False

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        """Return ``inputs`` in this distribution, and whether anything changed."""
        raise NotImplementedError

    def call(self, call: Call) -> Call:
        """Return how the problem's ``call`` is made on the inputs."""
        return call

    def compares(self, drawing: Drawing) -> bool:
        """Check whether the original runs on the inputs as well."""
        return self.held_by_original

    def is_exact(self, expected: Array, native: Array) -> bool:
        """Check whether an honest kernel finds the ``expected`` values but for the rounding to its output's type."""
        return False

    def excuse(self, case: JudgedCase, mine: Leaf, comparison: OutputComparison) -> Reason | None:
        """Return a note in the place of a reason, where a fault is not held against the candidate."""
        return None

    def cause(self, mine: Leaf, comparison: OutputComparison) -> Reason | None:
        """Return the reason for a fault where it has another one than wrong values."""
        return None

    def overlooked(self, case: JudgedCase, mine: Leaf, number: int) -> Reason | None:
        """Return what is wrong in an output, all of which is known, that the comparison of all elements lets pass."""
        return None


Shape = dict[str, int]


class SizeProbe(Probe):
    """Sizes that the gate chooses itself. A candidate has to do there what the original does."""

    #: At most so many cases are planned.
    most: ClassVar[int] = 1
    #: Tried where there is another original: alone a candidate need not take such sizes.
    beside_original: ClassVar[bool] = False
    #: Only for candidates that compare sizes with numbers.
    for_limits: ClassVar[bool] = False
    #: Whether it is told where the problem does not draw a case at such sizes.
    told: ClassVar[bool] = False
    #: A candidate may raise where the original does not: it says so itself.
    may_raise: ClassVar[bool] = False
    #: Nothing is computed at its sizes: what is launched there has to be what the target takes.
    launches_only: ClassVar[bool] = False
    #: Its case stands for the main one where that cannot be interpreted.
    stands_in: ClassVar[bool] = False

    def shapes(self, drawing: Drawing) -> list[Shape]:
        """Return the sizes to try of ``drawing.problem``, the most telling first."""
        raise NotImplementedError

    def too_large(self, drawing: Drawing) -> str:
        """Return why the problem is not tried at other sizes; "" where it is."""
        return ""

    def leaves_open(self, drawing: Drawing, shape: Mapping[str, int]) -> bool:
        """Check whether the problem, or the candidate itself, leaves open that it takes such a size."""
        return True
