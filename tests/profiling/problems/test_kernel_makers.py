"""A function that makes a kernel gets a problem's first inputs, and the kernel those that are left."""

from __future__ import annotations

import ast
from types import ModuleType

import pytest

from accelopt_profiling.problems.call import perform
from accelopt_profiling.problems.discovery.entry import check_entry
from accelopt_profiling.problems.inference.kernel_makers import made_function, makes_with
from accelopt_profiling.problems.problem import Call, ProblemError

TEXT = """
def make(rows, scale=2):
    @jit
    def kernel(x, y=1):
        return x * rows * scale + y

    return {returned}
"""


def maker(returned: str) -> ast.FunctionDef:
    node = ast.parse(TEXT.format(returned=returned)).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


@pytest.mark.parametrize(
    ("returned", "name"),
    [("kernel", "kernel"), ("kernel, rows", "kernel"), ("kernel(rows)", None), ("rows, kernel", None)],
)
def test_a_maker_returns_a_function_of_its_own(returned: str, name: str | None) -> None:
    inner = made_function(maker(returned))
    assert (inner and inner.name) == name


@pytest.mark.parametrize(("count", "fits"), [(1, False), (2, False), (3, True), (4, False)])
def test_the_inputs_are_those_of_both(count: int, fits: bool) -> None:
    assert makes_with(maker("kernel"), count) is fits


@pytest.mark.parametrize("returned", ["kernel", "kernel, rows"])
def test_the_kernel_is_called_with_what_the_maker_does_not_require(returned: str) -> None:
    module = ModuleType("kernel_file")
    exec(TEXT.replace("    @jit\n", "").format(returned=returned), vars(module))  # noqa: S102
    assert perform(module, Call("make"), [3, 5, 7]) == [5 * 3 * 2 + 7]
    check_entry(TEXT.format(returned=returned), "make", 3, "kernel_file.py")


def test_too_many_inputs_of_another_function_are_still_an_error() -> None:
    module = ModuleType("kernel_file")
    exec("def double(x):\n    return 2 * x\n", vars(module))  # noqa: S102
    with pytest.raises(TypeError, match="positional"):
        perform(module, Call("double"), [3, 5])
    with pytest.raises(ProblemError, match="takes other arguments"):
        check_entry("def double(x):\n    return 2 * x\n", "double", 2, "kernel_file.py")
