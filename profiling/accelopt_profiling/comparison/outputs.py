"""The one comparison of a kernel's outputs with the reference, for profiles, device runs and the gate.

A kernel's outputs are brought into the reference's layout by the problem, flattened into leaves, and compared leaf by
leaf under the rule of ``tolerance``. The reference's native run and its runs on inputs nearby only ever widen what is
allowed, so that a profile makes them for outputs that would be refused without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from accelopt_profiling.comparison.elements import Array, OutputComparison, compare, compare_exact
from accelopt_profiling.comparison.inplace_outputs import joined
from accelopt_profiling.comparison.leaves import Leaf, leaves_of
from accelopt_profiling.comparison.memory import arrays_of
from accelopt_profiling.comparison.reference import ReferenceRuns
from accelopt_profiling.comparison.ties import name_equal_elements
from accelopt_profiling.comparison.tolerance import Allowed, allowed
from accelopt_profiling.comparison.values import dtype_name
from accelopt_profiling.measurement import Correctness
from accelopt_profiling.problems.call import check_answer
from accelopt_profiling.problems.problem import Problem, ProblemError, Tolerance

#: Which elements of an output are known, by the output's number; the others were not computed.
Masks = Mapping[int, Array]

NO_REFERENCE = (
    "The problem has no reference; add `reference`, which takes the inputs and returns the right outputs."
)
#: Inputs nearby are eight roundings off: a run on them allows about so much more than the native one, of one rounding.
_NARROW = 8.0
_NOT_NUMBERS = {
    "not-finite": "NaN or infinity where there should be a number: ",
    "missed-not-finite": "a number where there should be NaN or infinity: ",
}


class ExpectedOutputs:
    """The values that a kernel's outputs are compared with, and the rule by which they are.

    ``load`` gives the leaves of "expected" (the most precise result), "native" (the reference in the inputs' own
    precision), "rounding" (the errors that it makes there, for few elements), "nearby" and "further" (on inputs a
    little off) and "inputs"; None where there are none. ``stated`` is the problem's tolerance; it may be replaced.
    With ``lazy`` the runs besides "expected" are asked for only while an output would be refused without them.
    """

    def __init__(
        self, load: Callable[[str], list[Leaf] | None], stated: Tolerance, lazy: bool = False
    ) -> None:
        self._load, self.stated, self._lazy = load, stated, lazy

    @cached_property
    def expected(self) -> list[Leaf]:
        return self._load("expected") or []

    @cached_property
    def native(self) -> list[Leaf]:
        return self._load("native") or []

    @cached_property
    def inputs(self) -> list[Leaf]:
        return self._load("inputs") or []

    @cached_property
    def nearby(self) -> list[Leaf | None]:
        return [leaf if leaf is not None and leaf.floating else None for leaf in self._others("nearby")]

    @cached_property
    def further(self) -> list[Leaf | None]:
        return [None if leaf is None or leaf.floating else leaf for leaf in self._others("further")]

    @cached_property
    def rounding(self) -> list[Leaf | None]:
        return self._others("rounding")

    def _others(self, name: str) -> list[Leaf | None]:
        """Return the reference's leaves for other inputs, output by output. None where that is not known."""
        leaves = self._load(name) or []
        fits = len(leaves) == len(self.expected)
        return [
            leaves[n] if fits and leaves[n].shape == leaf.shape else None
            for n, leaf in enumerate(self.expected)
        ]

    def input_dtypes(self) -> list[str]:
        return [leaf.dtype for leaf in self.inputs if leaf.floating and leaf.library != "number"]

    def allowed(self, mine: Leaf, number: int, stated: Tolerance | None = None) -> Allowed:
        """Return the error that output ``number`` may have."""
        return allowed([*self.input_dtypes(), mine.dtype], self.stated if stated is None else stated)

    def compare(
        self, values: Array, number: int, limit: Allowed, valid: Array | None = None
    ) -> OutputComparison:
        """Compare values with those that are expected of output ``number``.

        ``valid`` marks the elements that were computed; the others are not held against the kernel.
        """
        mask = valid if valid is not None and valid.shape == values.shape else None
        attempt = (
            partial(self._compare_floats, values, number, limit, mask)
            if self.expected[number].floating and values.dtype.kind == "f"
            else partial(self._compare_exact, values, number, mask)
        )
        comparison = OutputComparison()
        for runs in (0, 1, 2) if self._lazy else (2,):
            comparison = attempt(runs)
            if comparison.fault != "wrong-result":
                break
        return comparison

    def _compare_floats(
        self, values: Array, number: int, limit: Allowed, mask: Array | None, runs: int
    ) -> OutputComparison:
        native = self._native(number, values.shape).values if runs else None
        rounded = self.rounding[number] if runs > 1 else None
        native = native if rounded is None else rounded.values
        near = self.nearby[number] if runs > 1 else None
        nearby = None if near is None else near.values
        return compare(
            values, self.expected[number].values, native=native, limit=limit, nearby=nearby, valid=mask
        )

    def _compare_exact(self, values: Array, number: int, mask: Array | None, runs: int) -> OutputComparison:
        native = (self._native(number, values.shape) if runs else self.expected[number]).values
        further = self.further[number] if runs > 1 else None
        arrays = [values, native, *([] if further is None else [further.values])]
        comparison = compare_exact(*(array if mask is None else np.where(mask, array, 0) for array in arrays))
        if comparison.fault and mask is None and self._may_name(values, number, native):
            return OutputComparison()
        return comparison

    def _may_name(self, values: Array, number: int, native: Array) -> bool:
        """Check whether indices name equal elements of an input as the reference's do."""
        return name_equal_elements(values, native, self._floats())

    def _native(self, number: int, shape: tuple[int, ...]) -> Leaf:
        """Return the native run's output ``number``.

        The expected one where a lazy native run returned something else.
        """
        fits = len(self.native) == len(self.expected) and self.native[number].shape == shape
        return self.native[number] if fits or not self._lazy else self.expected[number]

    def _floats(self) -> list[Array]:
        return [leaf.values for leaf in self.inputs if leaf.floating and leaf.library != "number"]

    def first_fault(self, leaves: list[Leaf], masks: Masks | None = None) -> OutputComparison | None:
        """Return the comparison of the first output that is wrong.

        None where all are right. Forms must agree.
        """
        return next(
            (comparison for _, comparison in self.comparisons(leaves, masks) if comparison.fault), None
        )

    def comparisons(
        self, leaves: list[Leaf], masks: Masks | None = None
    ) -> Iterator[tuple[Leaf, OutputComparison]]:
        """Yield each output with its comparison."""
        for number, leaf in enumerate(leaves):
            mask = (masks or {}).get(number)
            yield leaf, self.compare(leaf.values, number, self.allowed(leaf, number), mask)


def difference(leaf: Leaf, comparison: OutputComparison) -> str:
    """Return a wrong output in words: which one, how far off, and where."""
    return f"{leaf.where}: {_NOT_NUMBERS.get(comparison.fault, '')}{comparison.detail}."


def form_difference(actual: list[Leaf], expected: list[Leaf]) -> tuple[str, str] | None:
    """Return a code and a sentence about another count or shape of outputs; None where they agree."""
    if len(actual) != len(expected):
        return "wrong-count", f"It returned {len(actual)} outputs, the reference {len(expected)}."
    for mine, theirs in zip(actual, expected, strict=True):
        if mine.shape != theirs.shape:
            return "wrong-shape", f"{mine.where} has the shape {mine.shape}, the reference {theirs.shape}."
    return None


class _LiveOutputs(ExpectedOutputs):
    """Expected outputs in this process: the reference is run when they are asked for."""

    def __init__(self, runs: ReferenceRuns, stated: Tolerance, nearby: bool = True) -> None:
        super().__init__(self._run, stated, lazy=True)
        self._runs, self._nearby = runs, nearby

    @cached_property
    def _drawn(self) -> list[Any]:
        return self._runs.inputs()

    def input_dtypes(self) -> list[str]:
        return [dtype_name(array.dtype) for _, array in arrays_of(self._drawn)]

    def _run(self, name: str) -> list[Leaf] | None:
        runs = self._runs
        if name == "inputs":
            return leaves_of(self._drawn, others=True)
        if name == "expected":
            return leaves_of(runs.expected.values)
        if name == "native":
            return leaves_of(runs.native)
        return leaves_of(runs.nearby[name]) if self._nearby and name in runs.nearby else None


class OutputCheck:
    """Compares outputs of runs on the same inputs with the problem's reference.

    ``inputs`` gives the inputs as they were drawn; ``written`` as in ``ReferenceRuns``.
    """

    def __init__(
        self, problem: Problem, inputs: Callable[[], list[Any]], written: list[int] | None = None
    ) -> None:
        self._problem = problem
        self._runs = ReferenceRuns(problem, inputs, written)
        self._expected = _LiveOutputs(self._runs, problem.tolerance)

    def check(
        self,
        outputs: list[Any] | None,
        inputs_after: list[Any] | None = None,
        masks_of: Callable[[list[Any]], Masks] = lambda outputs: {},
    ) -> Correctness:
        """Return the verdict on a kernel's raw ``outputs``, None where it returned nothing. ``inputs_after`` are the
        inputs that it was given, as it left them, for problems whose reference writes to its inputs.
        ``masks_of`` gives the masks of outputs that were computed in part.

        Raises:
            ProblemError: the reference returned nothing, or the kernel did and should have. What the reference raises
                itself passes through.
        """
        reference = self._runs.expected
        if not reference.values:
            return Correctness("not checked", NO_REFERENCE)
        try:
            check_answer(reference.values)
        except ProblemError as error:
            return Correctness("not checked", error.message)
        if self._runs.written and inputs_after is not None:
            outputs = joined(outputs or [], inputs_after, self._runs.written)
        elif outputs is None:
            message = "The kernel's function returned nothing; let it return the outputs."
            raise ProblemError("problem-empty", message)
        try:
            finished = self._problem.finish(outputs, reference.values)
            leaves = leaves_of(finished)
        except ProblemError:
            raise
        except Exception as error:  # the problem's own code meets outputs of any shape or kind here
            why = f"{type(error).__name__}: {error}"[:200]
            return Correctness("failed", f"The outputs do not fit the reference's layout: {why}.")
        return _verdict(leaves, self._expected, masks_of(finished), reference.precision)


def narrowly_refused(runs: ReferenceRuns, outputs: list[Any]) -> bool:
    """Check whether a kernel's outputs would be refused by so little that runs on inputs nearby may allow them.

    What the problem's own code raises on them passes through.
    """
    leaves = leaves_of(runs.problem.finish(outputs, runs.expected.values))
    expected = _LiveOutputs(runs, runs.problem.tolerance, nearby=False)
    if form_difference(leaves, expected.expected) is not None:
        return False
    comparison = expected.first_fault(leaves)
    return comparison is not None and 1 < max(comparison.whole, comparison.row, comparison.element) <= _NARROW


def copy_inputs(value: Any) -> Any:
    """Return inputs as they are now, also inside of lists, tuples and dictionaries: a kernel may write to them before
    the reference reads them."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if hasattr(value, "detach") and hasattr(value, "requires_grad"):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)([copy_inputs(item) for item in value])
    if type(value) is dict:
        return {key: copy_inputs(item) for key, item in value.items()}
    return value


def check_outputs(
    problem: Problem,
    inputs: list[Any],
    outputs: list[Any] | None,
    inputs_after: list[Any] | None = None,
    masks_of: Callable[[list[Any]], Masks] = lambda outputs: {},
) -> Correctness:
    """Check as ``OutputCheck.check`` does, for one run on ``inputs``, which are as they were drawn."""
    return OutputCheck(problem, lambda: inputs).check(outputs, inputs_after, masks_of)


def _verdict(leaves: list[Leaf], expected: ExpectedOutputs, masks: Masks, precision: str) -> Correctness:
    wrong = form_difference(leaves, expected.expected)
    if wrong is not None:
        return Correctness("failed", wrong[1])
    compared, total = compared_elements(leaves, masks)
    if total and not compared:
        detail = f"The sampled programs fixed none of the output's {total:,} elements."
        return Correctness("not checked", detail, 0, total)
    worst = 0.0
    for leaf, comparison in expected.comparisons(leaves, masks):
        if comparison.fault:
            return Correctness("failed", difference(leaf, comparison), compared, total)
        worst = max(worst, comparison.relative)
    message = "equal to the reference"
    if precision != "exact":
        reference = (
            "the reference in float64" if precision == "float64" else f"the reference's {precision} values"
        )
        message = f"relative L2 error {worst:.1e} against {reference}"
    verdict = Correctness("passed", message, compared, total)
    if compared < total:
        extent = f"{verdict.extent} compared, those that a sample of the programs writes"
        return replace(verdict, detail=f"{message}, {extent}")
    return verdict


def compared_elements(leaves: list[Leaf], masks: Masks) -> tuple[int, int]:
    """Return how many elements of the outputs are known and compared, and how many there are."""
    total = sum(leaf.values.size for leaf in leaves)
    unknown = sum(
        int(np.count_nonzero(~mask))
        for n, mask in masks.items()
        if n < len(leaves) and mask.shape == leaves[n].shape
    )
    return total - unknown, total
