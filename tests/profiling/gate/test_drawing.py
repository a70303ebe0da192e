"""A case is drawn alone as it is among the others: what it holds follows from itself and the check's first seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.cases import plan_cases
from accelopt_profiling.gate.near_limit import further_draws
from accelopt_profiling.gate.request import Case, CaseOptions
from accelopt_profiling.gate.step_schemas import DrawnCase, DrawParams
from accelopt_profiling.gate.steps.draw import draw
from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext

SOFTMAX = """
import numpy as np

shapes = [{"rows": 6, "columns": 20}, {"rows": 30, "columns": 50}]

def get_inputs(rows=48, columns=96):
    return [np.random.normal(size=(rows, columns)).astype(np.float32),
            np.random.normal(size=(columns,)).astype(np.float32), 0.3]

def reference(x, w, scale):
    x = x - x.mean(axis=1, keepdims=True)
    top = np.exp(scale * x - (scale * x).max(axis=1, keepdims=True))
    return top / top.sum(axis=1, keepdims=True) * w
"""
#: The same whatever the seed, written in place, and with sizes that are no arguments.
SEEDED = """
import numpy as np

SIZE = 40

def get_inputs():
    random = np.random.default_rng(0)
    return [random.normal(size=(SIZE, 24)).astype(np.float32), np.arange(24), random.integers(0, 9, (SIZE,), np.int8)]

def reference(x, order, codes):
    x[:] = np.maximum(x[:, order], 0) + codes[:, None]
    return x
"""
PROBLEMS = {"softmax": SOFTMAX, "seeded": SEEDED}
#: The main shape is too large for the cases whose point is their values: they are drawn at a further one.
LARGE = 8 << 10
SEED = 11


def _drawn(folder: Path, problem: str, cases: Sequence[Case], large: int) -> dict[Case, tuple[Any, ...]]:
    """Draw cases in one job; for each what was drawn: its values by their digests, and how it was made."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"k.py": "def kernel(*arguments): ...\n", "problem_of_k.py": problem}
    ref = ProblemRef("module", "problem_of_k.py", "kernel")
    budget = GateBudget(large_bytes=large, input_bytes=1 << 30, result_bytes=1 << 30)
    params = DrawParams(
        ref,
        JobFiles("k.py", files),
        "numpy",
        "trn1",
        list(cases),
        SEED,
        2,
        budget,
    )
    context = StepContext(folder, params.source, lambda value: None)

    def content(drawn_case: DrawnCase) -> tuple[Any, ...]:
        values = drawn_case.digests[:-1]  # the last is of the call, of which `twice` is a part
        return (
            *values,
            drawn_case.left_out,
            str(drawn_case.shape),
            drawn_case.notes,
            drawn_case.shapes,
            drawn_case.aliases,
            str(drawn_case.call),
        )

    return {cases[drawn_case.index]: content(drawn_case) for drawn_case in draw(context, params)}


def _plan() -> list[Case]:
    plan = plan_cases(CaseOptions(shapes=2), limits=True)
    fixed = {case.seed: SEED + n for n, case in enumerate(plan)}
    plan = [replace(case, seed=fixed[case.seed], alters=fixed.get(case.alters or 0)) for case in plan]
    return [*plan, *further_draws(plan, list(range(0, len(plan), 3)))]


PLAN = _plan()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], dict[Case, tuple[Any, ...]]]:
    """Each problem's cases, drawn in one job, at home in their own shape and in a smaller one."""
    folder = tmp_path_factory.mktemp("whole")
    return {
        (name, large): _drawn(folder / f"{name}{large}", text, PLAN, large)
        for name, text in PROBLEMS.items()
        for large in (1 << 20, LARGE)
    }


@pytest.mark.parametrize("large", [1 << 20, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("problem", PROBLEMS)
@settings(max_examples=25, deadline=None)
@given(some=st.lists(st.sampled_from(PLAN), min_size=1, max_size=6, unique=True))
def test_any_cases_in_any_order_are_drawn_as_in_the_whole_list(
    problem: str,
    large: int,
    some: list[Case],
    whole: dict[tuple[str, int], dict[Case, tuple[Any, ...]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    expected = whole[problem, large]
    actual = _drawn(tmp_path_factory.mktemp("some"), PROBLEMS[problem], some, large)
    assert actual == {case: expected[case] for case in some if case in expected}


@pytest.mark.parametrize("large", [1 << 20, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_each_case_is_drawn_alone_as_in_the_whole_list(
    problem: str, large: int, whole: dict[tuple[str, int], dict[Case, tuple[Any, ...]]], tmp_path: Path
) -> None:
    expected = whole[problem, large]
    for n, case in enumerate(PLAN):
        actual = _drawn(tmp_path / str(n), PROBLEMS[problem], [case], large)
        assert actual == ({case: expected[case]} if case in expected else {}), case.name


def test_a_case_that_is_drawn_again_has_other_values(
    whole: dict[tuple[str, int], dict[Case, tuple[Any, ...]]],
) -> None:
    for drawn in whole.values():
        for case in filter(lambda case: case.again, drawn):
            first = next(c for c in PLAN if not c.again and case.name.startswith(f"{c.name}, "))
            if first in drawn and not drawn[first][-5]:
                assert drawn[case] != drawn[first], case.name
