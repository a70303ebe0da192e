"""Every kind of problem goes through ``profile``, ``verify`` and ``optimize``."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command
from support.problem_kinds import KINDS, NOTHING

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS)
def test_profile_compares_with_the_reference(accelopt: Command, home: Path, kind: str) -> None:
    case = KINDS[kind]
    path = case.write(home)
    right = accelopt("profile", case.kernel, "--target", case.target, "--json")
    assert right.code == 0, right.out
    (kernel,) = right.object["kernels"]
    assert kernel["name"] == case.name
    assert kernel["correctness"]["status"] == ("passed" if case.checks else "not checked"), kernel[
        "correctness"
    ]
    assert kernel["latency"]["us"] > 0
    path.write_text(case.changed(case.fault), encoding="utf-8")
    wrong = accelopt("profile", case.kernel, "--target", case.target, "--json")
    assert wrong.code == (1 if case.checks else 0)
    (kernel,) = wrong.object["kernels"]
    assert ("wrong-result" in [finding["code"] for finding in kernel["findings"]]) == case.checks


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "runs itself"])
def test_verify_accepts_the_right_rewrite_alone(accelopt: Command, home: Path, kind: str) -> None:
    case = KINDS[kind]
    path = case.write(home)
    candidate = path.with_name("candidate.py")
    given = ["--problem", case.problem, "--original", case.kernel, "--json"]
    for part, code in ((case.rewrite, 0), (case.fault, 1)):
        candidate.write_text(case.changed(part), encoding="utf-8")
        ended = accelopt("verify", candidate.relative_to(home), *given)
        assert ended.code == code, ended.out
        assert ended.object["accepted"] is (code == 0)
        if code:
            assert ended.object["reasons"][0]["code"] == "wrong-result"


@pytest.mark.parametrize("kind", ["runs itself", "without a reference"])
def test_verify_needs_a_reference_or_an_original(accelopt: Command, home: Path, kind: str) -> None:
    case = KINDS[kind]
    case.write(home)
    assert accelopt("verify", case.kernel, "--problem", case.problem, "--json").code == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_starts_from_a_baseline_and_proves_what_it_suggests(
    accelopt: Command, home: Path, kind: str
) -> None:
    case = KINDS[kind]
    case.write(home)
    ended = accelopt(
        "optimize", case.kernel, "--target", case.target, "--no-model", "--budget", "2", "--json"
    )
    assert ended.code in (0, 1), ended.err
    assert ended.object["baseline"]["us"] > 0
    assert (ended.code == 0) == bool(ended.object["suggestions"])
    assert all(suggestion["gate"]["accepted"] for suggestion in ended.object["suggestions"])
    if case.target == "trn1":  # there is a rule for its narrow tiles
        assert ended.object["suggestions"]


def test_a_kernel_without_a_problem(accelopt: Command, home: Path) -> None:
    NOTHING.write(home)
    ended = accelopt("profile", NOTHING.kernel, "--json")
    assert ended.code == 0
    assert [finding["code"] for finding in ended.object["findings"]] == ["inferred-problem"]
    searched = accelopt("optimize", NOTHING.kernel, "--no-model", "--budget", "2", "--json")
    assert searched.code == 0, searched.err
    assert all(suggestion["gate"]["accepted"] for suggestion in searched.object["suggestions"])
    assert accelopt("verify", NOTHING.kernel, "--problem", "absent.py", "--json").code == 2
