"""The sizes of a problem, and the case that its cost is stated for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from accelopt_profiling.problems.loading.cases import profiled_cases
from accelopt_profiling.problems.loading.python_problem import parse_counts
from accelopt_profiling.problems.loading.sizes import ProblemSizes, halved, integer_constants
from accelopt_profiling.problems.problem import ProblemError


@pytest.mark.parametrize(
    ("size", "half"), [(4096, 2048), (4095, 2047), (1000, 488), (64, 32), (17, 8), (1, 1)]
)
def test_half_a_size_leaves_the_same_rest_in_a_tile(size, half):
    assert halved(size) == half


def test_constants_of_a_module_are_smaller_while_applied():
    module = SimpleNamespace(rows=4096, name="x", flag=True)
    namespace = vars(module)
    exec("def get_inputs():\n    return [rows * columns, flag]\ncolumns = 300", namespace)  # noqa: S102
    constants = integer_constants(module, [namespace["get_inputs"]])
    assert constants == {"rows": 4096, "columns": 300}
    problem = SimpleNamespace(
        module=module, axes={}, constants=constants, inputs=lambda seed: namespace["get_inputs"]()
    )
    sizes = ProblemSizes(problem)
    assert sizes.halve()
    with sizes.applied():
        assert sizes.inputs(0)[0] == 2048 * 300
    assert namespace["rows"] == 4096
    assert str(sizes) == "rows=2048 instead of 4096"


def test_arguments_are_smaller_until_none_can_be():
    problem = SimpleNamespace(axes={"n": 40}, constants={"k": 9}, inputs=lambda seed, shape=None: [shape])
    sizes = ProblemSizes(problem, {"dtype": "fp16"})
    assert sizes.inputs(0) == [{"dtype": "fp16"}]
    assert sizes.halve()
    assert sizes.halve()
    assert sizes.inputs(0) == [{"dtype": "fp16", "n": 12}]
    assert not sizes.halve()


class _Cases:
    shapes = ({"n": 8}, {"n": 100}, {"n": "wrong"})

    def __init__(self, counts=()):
        self.counts = counts

    def inputs(self, seed, shape=None):
        return [np.zeros((shape or {"n": 1})["n"])]


def test_the_largest_case_is_profiled_unless_one_is_known_to_be_commonest():
    assert profiled_cases(_Cases(), 0)[0].shape == {"n": 100}
    assert [c.shape for c in profiled_cases(_Cases(), 0)][:2] == [{"n": 100}, {"n": 8}]
    assert profiled_cases(_Cases(), 0)[1].chosen == "the largest of 4 cases that launches a kernel"
    commonest = profiled_cases(_Cases([1, 7, 2, 0]), 0)[0]
    assert commonest.shape == {"n": 8}
    assert commonest.chosen == "the commonest of 4 cases (7 calls)"


def test_counts_of_cases():
    assert parse_counts(3, [{"n": 1, "count": 5}, {"n": 2}], None) == [3, 5, 0]
    with pytest.raises(ProblemError, match="how often"):
        parse_counts(0, [{"count": -1}], None)
