"""The sizes of a problem, and the case that its cost is stated for."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

from accelopt_profiling.problems.loading.cases import profiled_cases
from accelopt_profiling.problems.loading.python_problem import parse_counts
from accelopt_profiling.problems.loading.sizes import ProblemSizes, halved, integer_constants, name_numbers
from accelopt_profiling.problems.problem import Call, Problem, ProblemError


def problem_of(inputs, **fields):
    return Problem(inputs, lambda inputs: (Call("f"), inputs), **fields)


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
    problem = problem_of(
        lambda seed, shape=None: namespace["get_inputs"](), module=module, constants=constants
    )
    sizes = ProblemSizes(problem)
    assert sizes.halve()
    with sizes.applied():
        assert sizes.inputs(0)[0] == 2048 * 300
    assert namespace["rows"] == 4096
    assert str(sizes) == "rows=2048 instead of 4096"


def test_numbers_of_a_function_are_sizes(tmp_path):
    path = tmp_path / "numbers_problem.py"
    path.write_text(
        "def get_inputs():\n    seed(1234)\n    return [64, (64, 2**20), 3, 'n' * 16]\ndef seed(number): pass\n"
    )
    spec = importlib.util.spec_from_file_location("numbers_problem", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    draw = name_numbers(module, module.get_inputs)
    assert draw() == module.get_inputs()
    assert draw.__code__.co_firstlineno == 1
    constants = integer_constants(module, [draw])
    assert constants == {"64": 64, "1048576": 1048576, "16": 16}
    problem = problem_of(lambda seed, shape=None: draw(), module=module, constants=constants)
    sizes = ProblemSizes(problem).at({"64": 61})
    assert sizes.fixed
    assert str(sizes) == "61 instead of 64"
    with sizes.applied():
        assert sizes.inputs(0)[:3] == [61, (61, 1048576), 3]
    assert draw()[0] == 64


def test_functions_without_a_plain_source_stay_as_they_are():
    module = SimpleNamespace()
    lambda_function = eval("lambda: 512")  # noqa: S307
    for function in (lambda_function, len, SimpleNamespace):
        assert name_numbers(module, function) is function


def test_arguments_are_smaller_until_none_can_be():
    problem = problem_of(lambda seed, shape=None: [shape], axes={"n": 40}, constants={"k": 9})
    sizes = ProblemSizes(problem, {"dtype": "fp16"})
    assert sizes.inputs(0) == [{"dtype": "fp16"}]
    assert sizes.halve()
    assert sizes.halve()
    assert sizes.inputs(0) == [{"dtype": "fp16", "n": 12}]
    assert not sizes.halve()


def _cases(counts=()):
    shapes = ({"n": 8}, {"n": 100}, {"n": "wrong"})
    return problem_of(
        lambda seed, shape=None: [np.zeros((shape or {"n": 1})["n"])], shapes=shapes, counts=counts
    )


def test_the_largest_case_is_profiled_unless_one_is_known_to_be_commonest():
    assert profiled_cases(_cases(), 0)[0].shape == {"n": 100}
    assert [c.shape for c in profiled_cases(_cases(), 0)][:2] == [{"n": 100}, {"n": 8}]
    assert profiled_cases(_cases(), 0)[1].chosen == "the largest of 4 cases that launches a kernel"
    commonest = profiled_cases(_cases([1, 7, 2, 0]), 0)[0]
    assert commonest.shape == {"n": 8}
    assert commonest.chosen == "the commonest of 4 cases (7 calls)"


def test_counts_of_cases():
    assert parse_counts(3, [{"n": 1, "count": 5}, {"n": 2}], None) == [3, 5, 0]
    with pytest.raises(ProblemError, match="how often"):
        parse_counts(0, [{"count": -1}], None)
