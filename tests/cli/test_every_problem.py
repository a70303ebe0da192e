"""Every kind of problem goes through the profile, its receipt and the gate, and some through a search."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command
from support.problem_kinds import AT_A_FRONT_END, KINDS, NOTHING, ProblemCase

pytestmark = pytest.mark.slow


def replay(accelopt: Command, home: Path, case: ProblemCase, *receipts: str) -> None:
    """Assert that profiles and checks agree with themselves after every file of the project is gone."""
    for name in case.files:
        (home / name).unlink()
    for receipt in receipts:
        again = accelopt("replay", receipt, "--json")
        assert (again.code, again.object["differences"]) == (0, []), again.out


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
    receipt = kernel["receipt"]
    path.write_text(case.changed(case.fault), encoding="utf-8")
    wrong = accelopt("profile", case.kernel, "--target", case.target, "--json")
    assert wrong.code == (1 if case.checks else 0)
    (kernel,) = wrong.object["kernels"]
    assert ("wrong-result" in [finding["code"] for finding in kernel["findings"]]) == case.checks
    replay(accelopt, home, case, receipt)


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "runs itself"])
def test_verify_accepts_the_right_rewrite_alone(accelopt: Command, home: Path, kind: str) -> None:
    case = KINDS[kind]
    path = case.write(home)
    candidate = path.with_name("candidate.py")
    options = ["--problem", case.problem, "--original", case.kernel, "--json"]
    for part, code in ((case.rewrite, 0), (case.fault, 1)):
        candidate.write_text(case.changed(part), encoding="utf-8")
        ended = accelopt("verify", candidate.relative_to(home), *options)
        assert ended.code == code, ended.out
        assert ended.object["accepted"] is (code == 0)
        if code:
            assert ended.object["reasons"][0]["code"] == "wrong-result"


@pytest.mark.parametrize("kind", ["runs itself", "without a reference"])
def test_verify_needs_a_reference_or_an_original(accelopt: Command, home: Path, kind: str) -> None:
    case = KINDS[kind]
    case.write(home)
    assert accelopt("verify", case.kernel, "--problem", case.problem, "--json").code == 2


@pytest.mark.parametrize("kind", AT_A_FRONT_END)
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


_KERNEL, _PROBLEM = (KINDS["module"].files[name] for name in ("k.py", "k_problem.py"))
#: What a receipt needs besides the kernel file, one at a time: files changed after the profile do not count.
_PACKAGE = {
    "lib/__init__.py": "",
    "lib/sizes.py": "from lib.more.deep import COLUMNS\n",
    "lib/more/deep.py": "COLUMNS = 128\n",
}
_IMPORTING = ProblemCase(
    {"kernels/k.py": _KERNEL.replace("COLUMNS = 128", "from lib.sizes import COLUMNS"), **_PACKAGE,
     "problems/p.py": _PROBLEM, "accelopt.toml": '[problem]\n"kernels/*.py" = "problems/p.py"\n'},
    ("nl.multiply(tile, nl.sigmoid(tile))", "nl.multiply(nl.sigmoid(tile), tile)"), ("", ""), "problems/p.py",
    "kernels/k.py",
)  # fmt: skip
REPLAYED = {
    "nothing": NOTHING,
    "a problem elsewhere and a package of the project": _IMPORTING,
    "relative imports": ProblemCase(
        {"pkg/__init__.py": "", "pkg/k.py": _KERNEL.replace("COLUMNS = 128", "from .sizes import COLUMNS"),
         "pkg/sizes.py": "COLUMNS = 128\n", "pkg/k_problem.py": _PROBLEM}, ("", ""), ("", ""), kernel="pkg/k.py",
    ),
    "relative imports of a loose folder": ProblemCase(
        {"k.py": _KERNEL.replace("COLUMNS = 128", "from .sizes import COLUMNS"), "sizes.py": "COLUMNS = 128\n",
         "k_problem.py": _PROBLEM}, ("", ""), ("", ""),
    ),
    "a name that is computed": ProblemCase(
        {"pkg/__init__.py": "", "pkg/sizes.py": "COLUMNS = 128\n", "pkg/k_problem.py": _PROBLEM,
         "pkg/k.py": _KERNEL.replace(
             "COLUMNS = 128", "import importlib\nCOLUMNS = importlib.import_module(__package__ + '.sizes').COLUMNS")},
        ("", ""), ("", ""), kernel="pkg/k.py",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REPLAYED)
def test_a_receipt_holds_all_that_is_needed_to_do_it_again(accelopt: Command, home: Path, kind: str) -> None:
    case = REPLAYED[kind]
    path = case.write(home)
    profiled = accelopt("profile", case.kernel, "--target", case.target, "--json")
    (kernel,) = profiled.object["kernels"]
    receipts = [kernel["receipt"]]
    if case is _IMPORTING:
        candidate = path.with_name("candidate.py")
        candidate.write_text(case.changed(case.rewrite), encoding="utf-8")
        options = ["--problem", case.problem, "--original", case.kernel, "--json"]
        receipts.append(accelopt("verify", candidate.relative_to(home), *options).object["receipt"])
    replay(accelopt, home, case, *receipts)
