"""What a problem states beside its functions: ``tolerance`` in both vocabularies, ``shapes`` and ``entry``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accelopt_profiling.problems.call import check_answer
from accelopt_profiling.problems.loading.python_problem import parse_entry, parse_tolerance
from accelopt_profiling.problems.problem import ProblemError, Tolerance


@pytest.mark.parametrize(
    ("stated", "tolerance"),
    [
        (None, Tolerance()),
        (0, Tolerance(0.0)),
        (1e-3, Tolerance(1e-3)),
        (np.float64(0.5), Tolerance(0.5)),
        (np.float32(0.5), Tolerance(0.5)),
        ({}, Tolerance()),
        ({"rtol": 1e-3}, Tolerance(1e-3)),
        ({"atol": 1e-5}, Tolerance(None, 1e-5)),
        ({"rtol": 1e-3, "atol": 1e-5}, Tolerance(1e-3, 1e-5)),
        ({"relative": 1e-3, "absolute": 1e-5}, Tolerance(1e-3, 1e-5)),
        ({"rtol": None, "absolute": 1}, Tolerance(None, 1.0)),
    ],
)
def test_a_tolerance_in_either_vocabulary(stated: Any, tolerance: Tolerance) -> None:
    assert parse_tolerance(stated, "p.py") == tolerance


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ("1e-3", "is '1e-3';"),
        (-1, "is -1;"),
        (True, "is True;"),
        (float("nan"), "is nan;"),
        (float("inf"), "is inf;"),
        (10**400, "is 1000"),
        (1j, "is 1j;"),
        ([1e-3, 1e-5], "is [0.001, 1e-05];"),
        (np.ones(2), "is array([1., 1.]);"),
        ({"rtol": "a"}, "('rtol' is 'a')"),
        ({"atol": True}, "('atol' is True)"),
        ({"rel": 1}, "(the key 'rel' is unknown)"),
        ({1: 1}, "(the key 1 is unknown)"),
        ({"rtol": 1, "relative": 2}, "('relative' is there twice, under two names)"),
    ],
)
def test_a_wrong_tolerance_is_named_with_its_file(stated: Any, message: str) -> None:
    with pytest.raises(ProblemError) as raised:
        parse_tolerance(stated, "p.py")
    assert raised.value.message.startswith("`tolerance` in p.py is ")
    assert message in raised.value.message


def test_an_entry_is_a_name_or_the_function() -> None:
    assert parse_entry(None, "p.py") is None
    assert parse_entry("run", "p.py") == "run"
    assert parse_entry(check_answer, "p.py") == "check_answer"
    for wrong in (5, "", [], {"entry": 1}):
        with pytest.raises(ProblemError, match=r"`entry` in p\.py is"):
            parse_entry(wrong, "p.py")


@pytest.mark.parametrize(
    "outputs",
    [[np.ones(3)], [np.full(3, np.inf)], [np.array([np.nan, 1])], [np.zeros(0), np.ones(1)], [1.0], [[np.ones(0)]]],
)  # fmt: skip
def test_an_answer_with_something_to_compare(outputs: list[Any]) -> None:
    check_answer(outputs)


@pytest.mark.parametrize(
    "outputs", [[np.zeros((0, 4))], [np.full(3, np.nan)], [np.zeros(0), np.full(1, np.nan)]]
)
def test_an_answer_with_nothing_to_compare(outputs: list[Any]) -> None:
    with pytest.raises(ProblemError):
        check_answer(outputs)
