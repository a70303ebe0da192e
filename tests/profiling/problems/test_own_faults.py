"""Faults that are a file's own are told from those that other arguments may mend, by what they depend on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from accelopt_profiling.problems.inference.own_faults import own_fault_line

TEXT = """
import math

N = 4

def block(shape, like=None):
    return [None] * shape[0]

def join(a, b):
    if len(a) != len(b):
        raise ValueError("other sizes")

def helper(x):
    return [1] + x

def kernel(x, rows=3):
    fixed = block((4, 2), like=x.dtype)
    sized = block((rows, 2))
    at = len(x.values)
    {}
"""
OWN = {
    "nothing(fixed)": "a name that there is not",
    "math.nothing(fixed)": "a function that the module does not have",
    "math.floor(x.values[0], 3)": "a call that does not fit",
    "block()": "a call that lacks an argument",
    "fixed[7]": "nothing that an argument decides",
    "int('x') + N": "a constant",
}
BY_ARGUMENTS = {
    "join(fixed, sized)": "sizes that the arguments decide",
    "sized[7]": "a size",
    "x.nothing": "the type of an argument",
    "x.values[9]": "the size of an argument",
    "block((at, 0))[1:][at]": "a name made of one",
    "[0] + x.values + 1": "its type",
    "raise ValueError('An index reaches 9')": "a value in memory",
}


def failed(statement: str) -> tuple[BaseException, str]:
    text = TEXT.format(statement)
    space: dict[str, Any] = {}
    exec(compile(text, "k.py", "exec"), space)  # noqa: S102  (written above)
    with pytest.raises(Exception) as raised:
        space["kernel"](SimpleNamespace(dtype="f", values=[1.0, 2.0]))
    return raised.value, text


@pytest.mark.parametrize("statement", OWN, ids=OWN.values())
def test_what_no_argument_mends_is_the_files_own(statement: str) -> None:
    error, text = failed(statement)
    assert own_fault_line(error, "k.py", text) == text.splitlines().index(f"    {statement}") + 1


@pytest.mark.parametrize("statement", BY_ARGUMENTS, ids=BY_ARGUMENTS.values())
def test_what_other_arguments_may_mend_is_not(statement: str) -> None:
    error, text = failed(statement)
    assert own_fault_line(error, "k.py", text) == 0


def test_an_error_of_no_file_is_nobodys() -> None:
    assert own_fault_line(None, "k.py", TEXT) == 0
    assert own_fault_line(NameError("x"), "k.py", TEXT) == 0
