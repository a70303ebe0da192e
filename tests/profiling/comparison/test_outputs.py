"""The one comparison of outputs with a reference: layout, forms, precision, ties and arguments written in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from accelopt_profiling.comparison.outputs import check_outputs, narrowly_refused
from accelopt_profiling.comparison.reference import ReferenceRuns, widen
from accelopt_profiling.problems.problem import Call, Problem, ProblemError, as_they_are, no_reference

Array = np.ndarray[Any, Any]


class _Problem(Problem):
    """A problem of one reference; ``layout`` brings outputs into the reference's."""

    def __init__(
        self, answer: Callable[..., Any], layout: Callable[[list[Any], list[Any]], list[Any]] = as_they_are
    ) -> None:
        def reference(inputs: list[Any]) -> list[Any]:
            self.runs.append([str(v.dtype) for v in inputs if isinstance(v, np.ndarray)])
            values = answer(*inputs)
            if values is None:
                raise ProblemError("problem-empty", "`reference` returned nothing.")
            return list(values) if isinstance(values, (list, tuple)) else [values]

        super().__init__(
            lambda seed, shape=None: [], lambda inputs: (Call("kernel"), inputs), reference, layout
        )
        self.runs: list[list[str]] = []


def checked(
    problem: _Problem, inputs: list[Any], outputs: list[Any] | None, inputs_after: list[Any] | None = None
) -> Any:
    return check_outputs(problem, inputs, outputs, inputs_after)


X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)


def doubled(x: Array) -> Array:
    return 2 * x


@pytest.mark.parametrize(
    ("got", "want", "status", "words"),
    [
        (np.ones(4, np.float32), np.ones(4), "passed", r"L2 error 0.0e\+00 against the reference in float64"),
        (np.ones(4, np.float32), np.ones(4) * (1 + 1e-4), "failed", "relative L2 error 0.0001"),
        (np.array([1, np.nan], np.float32), np.ones(2), "failed", r"1 element, first at \[1\]: nan instead of 1"),
        (np.array([1, np.inf], np.float32), np.array([1, np.inf]), "passed", ""),
        (np.array([1, 2], np.float32), np.array([1, np.nan]), "failed", "a number where there should be NaN"),
        (np.ones((2, 2), np.float32), np.ones(4), "failed", "shape"),
        (np.array([1, 2]), np.array([1, 3]), "failed", r"1 of 2 elements differ, first at \[1\]: 2 instead of 3"),
        (np.array([1, 3], np.int32), np.array([1, 3]), "passed", "equal to the reference"),
    ],
)  # fmt: skip
def test_values(got: Array, want: Array, status: str, words: str) -> None:
    import re

    outcome = checked(_Problem(lambda x: want), [np.arange(4, dtype=np.float32)], [got])
    assert outcome.status == status
    assert re.search(words, outcome.detail), outcome.detail


def test_outputs_are_compared_in_the_layout_of_the_reference() -> None:
    def tiles(outputs: list[Any], expected: list[Any]) -> list[Any]:
        return [outputs[0].swapaxes(0, 1).reshape(expected[0].shape)]

    problem = _Problem(doubled, tiles)
    mine = (2 * X).reshape(4, 2, 6).swapaxes(0, 1)
    assert checked(problem, [X], [mine]).status == "passed"
    wrong = checked(problem, [X], [mine[::-1]])
    assert wrong.status == "failed"
    assert "worst at [" in wrong.detail
    unfit = checked(problem, [X], [mine[:1]])
    assert (unfit.status, unfit.compared) == ("failed", 0)
    assert "do not fit the reference's layout: ValueError" in unfit.detail


def test_another_count_of_outputs() -> None:
    assert "returned 2 outputs, the reference 1" in checked(_Problem(doubled), [X], [2 * X, X]).detail


def test_one_wrong_row_is_not_hidden_by_the_norm_of_the_whole() -> None:
    large = np.concatenate([X * 1e6, X]).astype(np.float32)
    mine = 2 * large
    mine[-1] *= 1.001
    outcome = checked(_Problem(doubled), [large], [mine])
    assert outcome.status == "failed"


def test_a_kernel_is_judged_by_what_its_precision_can_do() -> None:
    """A difference of nearly equal numbers: the reference in float32 is as far off as an honest kernel."""
    generator = np.random.default_rng(1)
    x = (1e4 + generator.standard_normal((4, 4096))).astype(np.float32)

    def centred_sum(x: Array) -> Array:
        return (x - x.mean(axis=-1, keepdims=True)).sum(axis=-1)

    problem = _Problem(centred_sum)
    assert checked(problem, [x], [centred_sum(x)]).status == "passed"
    assert problem.runs == [["float64"], ["float32"]]
    assert checked(problem, [x], [centred_sum(x) + 100]).status == "failed"


def test_the_native_run_is_made_only_where_it_matters() -> None:
    problem = _Problem(doubled)
    assert checked(problem, [X], [2 * X]).status == "passed"
    assert problem.runs == [["float64"]]


def test_a_reference_that_insists_on_a_dtype() -> None:
    def picky(x: Array) -> Array:
        if x.dtype != np.float32:
            raise TypeError("float32 only")
        return 2 * x

    outcome = checked(_Problem(picky), [X], [2 * X])
    assert (outcome.status, outcome.detail) == (
        "passed", "relative L2 error 0.0e+00 against the reference's float32 values"
    )  # fmt: skip


def test_equal_elements_may_be_named_by_either_index() -> None:
    x = np.array([[1, 5, 5], [7, 0, 7]], np.float32)
    problem = _Problem(lambda x: np.argmax(x, axis=-1))
    assert checked(problem, [x], [np.array([2, 0])]).status == "passed"
    assert checked(problem, [x], [np.array([0, 0])]).status == "failed"


def test_arguments_that_the_reference_writes_to_are_outputs() -> None:
    def add_to(x: Array, total: Array) -> None:
        total += x

    arguments = [X, np.ones_like(X)]
    assert checked(_Problem(add_to), arguments, None, [X, 1 + X]).status == "passed"
    assert checked(_Problem(add_to), arguments, None, arguments).status == "failed"
    assert (arguments[1] == 1).all()


def test_a_kernel_that_returns_nothing_where_nothing_is_written_in_place() -> None:
    with pytest.raises(ProblemError, match="returned nothing"):
        checked(_Problem(doubled), [X], None, [X])


def test_a_problem_without_a_reference() -> None:
    problem = _Problem(doubled)
    problem.reference = no_reference
    assert checked(problem, [X], [X]).status == "not checked"


def test_the_reference_gets_float64() -> None:
    assert widen(np.ones(2, np.float32)).dtype == np.float64
    assert widen(np.ones(2, np.int32)).dtype == np.int32
    assert widen(3) == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [(lambda x: x * np.nan, "NaN"), (lambda x: x[:0], "no element")],
    ids=["NaN", "empty"],
)
def test_a_reference_with_nothing_to_compare_checks_nothing(answer: Any, words: str) -> None:
    x = np.ones((4, 8), np.float32)
    verdict = check_outputs(_Problem(answer), [x], [answer(x)])
    assert (verdict.status, verdict.compared) == ("not checked", 0)
    assert words in verdict.detail


def softmax_of_product(a: Array, b: Array) -> Array:
    return softmax(a @ b)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def coarse(x: Array) -> Array:
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


@pytest.mark.parametrize("seed", [0, 4])
def test_one_run_nearby_does_not_decide_about_thousands_of_badly_conditioned_rows(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a = (30 * generator.standard_normal((16384, 64))).astype(np.float32)
    b = (4 * generator.standard_normal((64, 16))).astype(np.float32)
    honest = np.zeros((len(a), 16), np.float32)
    for k in range(64):
        honest += a[:, k : k + 1] * b[k : k + 1]
    parts = coarse(a) @ coarse(b) + coarse(a - coarse(a)) @ coarse(b) + coarse(a) @ coarse(b - coarse(b))
    for product, status in ((honest, "passed"), (parts, "failed"), (coarse(a) @ coarse(b), "failed")):
        correctness = checked(_Problem(softmax_of_product), [a, b], [softmax(product)])
        assert correctness.status == status, correctness.detail


def test_of_large_inputs_a_run_nearby_is_made_for_what_is_narrowly_refused_alone() -> None:
    generator = np.random.default_rng(1)
    a = (30 * generator.standard_normal((36864, 64))).astype(np.float32)
    b = (4 * generator.standard_normal((64, 16))).astype(np.float32)
    honest = np.zeros((len(a), 16), np.float32)
    for k in range(64):
        honest += a[:, k : k + 1] * b[k : k + 1]
    exact = softmax_of_product(a.astype(np.float64), b.astype(np.float64))
    for product, narrow, status in ((honest, True, "passed"), (coarse(a) @ coarse(b), False, "failed")):
        problem = _Problem(softmax_of_product)
        runs = ReferenceRuns(problem, lambda: [a, b], [])
        assert runs.large
        assert narrowly_refused(runs, [softmax(product)]) is narrow
        assert checked(problem, [a, b], [softmax(product)]).status == status
    problem = _Problem(softmax_of_product)
    runs = ReferenceRuns(problem, lambda: [a, b], [])
    assert not narrowly_refused(runs, [exact.astype(np.float32)])
    assert problem.runs == [["float64", "float64"]], "a right output asks for nothing more"
