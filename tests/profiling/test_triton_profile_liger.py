"""Other people's operators, as they are on PyPI."""

from __future__ import annotations

import pytest
from liger_operators import OPERATORS, fetch, profile_operator
from warm_steps import WarmSteps

pytestmark = [pytest.mark.triton, pytest.mark.slow]


@pytest.fixture(scope="module")
def package():
    return fetch()


@pytest.fixture(scope="module")
def warm():
    with WarmSteps() as steps:
        yield steps


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_profiles_unmodified_and_agrees_with_torch(name, warm, package):
    outcome = profile_operator(warm, name, package)
    assert outcome.profiled, outcome
    assert all(us > 0 for us in outcome.kernels.values())


def test_there_are_enough_of_them():
    assert len(OPERATORS) >= 8
