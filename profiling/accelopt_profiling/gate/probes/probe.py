"""What a probe is: one thing that a check looks for, with everything that belongs to it in one place.

Parts of a probe run in different processes: its inputs are made where the problem's code draws them, its judgement is
passed where no user code runs. A module of probes therefore imports nothing that only one of them has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from accelopt_profiling.comparison.elements import OutputComparison
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.gate.request import Case, GateDialect
from accelopt_profiling.gate.verdict import Reason

if TYPE_CHECKING:
    from accelopt_profiling.gate.judge.saved_outputs import SavedOutputs
    from accelopt_profiling.problems.loading.sizes import ProblemSizes
    from accelopt_profiling.problems.problem import Problem

Array = np.ndarray[Any, Any]
#: Inputs up to this size are given to the reference once more, to see what kinds of work it does and what it looks at.
COUNTED_BYTES = 4 << 20
#: Inputs, and whether a probe changed anything about them.
Change = tuple[list[Any], bool]


def mixed(seed: int) -> int:
    """Return the seed of what changes inputs, which is not that of their drawing."""
    return seed ^ 0x5DEECE66D


class Probe:
    """``name`` stands in receipts; ``catches`` says in a sentence which candidates it is for."""

    name: ClassVar[str]
    catches: ClassVar[str]


class Drawing(Protocol):
    """What the drawing process knows of the problem. ``first`` are the inputs at the main shape, ``size`` their bytes,
    ``large_bytes`` those up to which inputs are small; ``main`` are the sizes there, smaller than the problem's own
    where those do not fit. ``own_reference`` tells that the reference is not the original kernel, ``limits`` are the
    numbers that the candidate compares sizes with.
    """

    problem: Problem
    main: ProblemSizes
    first: list[Any]
    size: int
    large_bytes: int
    own_reference: bool
    limits: list[int]
    dialect: GateDialect
    target: str

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of work that the reference does (``observe.hostwork``)."""

    def is_finite(self, inputs: list[Any]) -> bool:
        """Check whether the reference takes ``inputs``, and gives numbers."""


class JudgedCase(Protocol):
    """A case while it is judged. ``alone`` tells that there is no original besides the candidate, ``replaces`` that
    what the candidate replaces is the reference itself.
    """

    answers: SavedOutputs
    alone: bool
    replaces: bool

    def original_right(self) -> bool | None:
        """Check whether the original kernel is right on this case; None where it did not run."""


class ValueProbe(Probe):
    """One distribution of inputs: how it is made of what the problem draws, and how its results are judged."""

    #: Made for some problems only; of others nobody asks whether it was left out.
    fits_some: ClassVar[bool] = False
    #: Exact by construction: an error on it is none of rounding, and is not drawn again near the limit.
    exact: ClassVar[bool] = False
    #: A candidate has to get right on it what the original does: nobody promised such inputs.
    held_by_original: ClassVar[bool] = False
    #: The case whose inputs it rearranges, "" where it has its own.
    rearranges: ClassVar[str] = ""

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        """Return ``inputs`` in this distribution, and whether anything changed."""
        raise NotImplementedError

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
    #: Only for candidates that compare sizes with numbers.
    for_limits: ClassVar[bool] = False
    #: Whether it is told where the problem does not draw a case at such sizes.
    told: ClassVar[bool] = False
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
