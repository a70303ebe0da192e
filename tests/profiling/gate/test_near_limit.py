"""A result a little beyond what is allowed is drawn again: what is so in one draw of four is kept, in all refused."""

from __future__ import annotations

import asyncio
from itertools import count

import numpy as np
import pytest
from support.gate_checker import Checker, codes

from accelopt_profiling.gate.gate import check
from accelopt_profiling.gate.near_limit import further_draws
from accelopt_profiling.gate.request import Case, CaseOptions, GateRequest
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.jobs import JobFiles, Limits
from accelopt_profiling.problems.call import seed_everything
from accelopt_profiling.problems.ref import ProblemRef

pytestmark = pytest.mark.slow

PROBLEM = """
import numpy as np

def get_inputs():
    return [np.random.normal(size=(20, 30)).astype(np.float32)]

def reference(x):
    return x * 2
"""
ORIGINAL = "def kernel(x):\n    return x + x\n"
#: Off by one and a half times what is allowed where the first element is large enough.
CANDIDATE = """
import numpy as np

def kernel(x):
    return x * np.float32(2) * np.float32(1 + 3e-5 * (x[0, 0] > FROM))
"""


def first_element(seed: int) -> float:
    seed_everything(seed)
    return float(np.float32(np.random.normal(size=(20, 30))[0, 0]))


def cases_one_of_which_stands_out(at: int) -> tuple[list[Case], float]:
    """Return cases of which the one ``at`` has a first element larger than that of all other draws, and a number
    between.
    """
    for seed in count(1):
        cases = [Case("original", seed), Case("draw 2", 1000 + seed, movable=True)]
        chosen = first_element(cases.pop(at).seed)
        others = [first_element(c.seed) for c in cases]
        cases = [Case("original", seed), Case("draw 2", 1000 + seed, movable=True)]
        others += [first_element(c.seed) for c in further_draws(cases, [at])]
        if chosen > max(others) + 0.1:
            return cases, max(others) + 0.05
    raise AssertionError


def verdict_of(checker: Checker, cases: list[Case], least: float, problem: str = PROBLEM) -> Verdict:
    files = {"problem_of_k.py": problem}
    request = GateRequest(
        JobFiles("k.py", {"k.py": CANDIDATE.replace("FROM", repr(least)), **files}),
        JobFiles("k.py", {"k.py": ORIGINAL, **files}), ProblemRef("module", "problem_of_k.py", "kernel"), "kernel",
        "numpy", "trn1", Limits(seconds=20), CaseOptions(), cases,
    )  # fmt: skip
    verdict, _ = checker.wait(asyncio.wait_for(check(checker.host, request), 120))
    return verdict


@pytest.mark.parametrize("at", [0, 1])
def test_a_draw_beyond_the_limit_is_weighed_against_three_more(at: int, checker: Checker) -> None:
    cases, least = cases_one_of_which_stands_out(at)
    verdict = verdict_of(checker, cases, least)
    assert verdict.accepted, verdict.reasons
    assert codes(verdict) == ["near-limit", "one-size"]
    assert repr(cases[at].name) in verdict.reasons[0].message
    refused = verdict_of(checker, cases, -100.0)
    assert not refused.accepted
    assert set(codes(refused)) == {"wrong-result"}


def test_further_draws_that_cannot_be_made_are_told(checker: Checker) -> None:
    cases, least = cases_one_of_which_stands_out(1)
    fails = PROBLEM.replace(
        "    return [", "    if np.random.get_state()[1][0] == FIRST: raise ValueError('no')\n    return ["
    )
    again = further_draws(cases, [1])[0].seed
    refused = verdict_of(checker, cases, least, fails.replace("FIRST", str(first_state(again))))
    assert codes(refused) == ["wrong-result", "near-limit"]
    assert "could not be compared: The problem cannot be used" in refused.reasons[1].message


SIGNS = """
import numpy as np

def kernel(x):
    return np.where(x > 0, np.float32(1), np.float32(-1))RATHER
"""
OF_SIGNS = """
import numpy as np

def get_inputs(m=20, n=30):
    return [np.random.normal(size=(m, n)).astype(np.float32)]

def reference(x):
    return np.sign(x)
"""


@pytest.mark.parametrize(
    ("rather", "accepted"),
    [(" * 1", True), (" * np.where(x == 0, np.float32(-1), np.float32(1))", False)],
    ids=["as the original", "in another way"],
)
def test_a_rewrite_is_wrong_as_its_original_is_on_values_that_nobody_draws(
    rather: str, accepted: bool, checker: Checker
) -> None:
    original = SIGNS.replace("RATHER", "")
    verdict, _ = checker.numpy(SIGNS.replace("RATHER", rather), OF_SIGNS, original)
    assert verdict.accepted is accepted, verdict.reasons
    assert ("near-limit" if accepted else "wrong-result") in codes(verdict)


def first_state(seed: int) -> int:
    """Return the first number of NumPy's global state after a seed."""
    seed_everything(seed)
    return int(np.random.get_state()[1][0])  # type: ignore[index]
