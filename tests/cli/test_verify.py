"""``accelopt verify`` with problems that cannot be used: wrong input (2), never a verdict on the candidate (1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command
from support.nki_kernels import SILU, WRONG

KERNEL = SILU[: SILU.index("def get_inputs")]
NUMPY = "import numpy as np\n"
INPUTS = "def get_inputs():\n    return [np.random.standard_normal((128, 128)).astype(np.float32)]\n"
REFERENCE = "def reference(x):\n    return x / (1 + np.exp(-x))\n"
GOOD = NUMPY + INPUTS + REFERENCE


def _inputs(body: str) -> str:
    return f"{NUMPY}def get_inputs():\n    {body}\n{REFERENCE}"


def _reference(body: str, arguments: str = "x") -> str:
    return f"{NUMPY}{INPUTS}def reference({arguments}):\n    {body}\n"


#: The problem's text, and what the message has to say beside the file's name.
INVALID = {
    "does not parse": ("def (", "does not parse"),
    "raises on import": (GOOD + "raise RuntimeError('half done')\n", "RuntimeError: half done"),
    "imports what is not there": ("import not_there\n" + GOOD, "not_there"),
    "exits on import": (GOOD + "raise SystemExit(3)\n", "ended its own process"),
    "no get_inputs": (NUMPY + REFERENCE, "not `get_inputs`"),
    "get_inputs raises": (_inputs("raise ValueError('no data')"), "ValueError: no data"),
    "get_inputs returns nothing": (_inputs("pass"), "`get_inputs` returned nothing"),
    "get_inputs returns text": (_inputs("return 'x'"), "a value of type str"),
    "get_inputs returns a dictionary": (_inputs("return {'x': np.ones((128, 128))}"), "a value of type dict"),
    "get_inputs returns objects": (_inputs("return [object()]"), "An input cannot be checked"),
    "too many inputs": (GOOD.replace("float32)]", "float32)] * 2"), "2 inputs"),
    "too many inputs for the entry": ("entry = 'silu'\n" + GOOD.replace("float32)]", "float32)] * 2"), "`silu(x)`"),
    "no reference": (NUMPY + INPUTS, "has no reference; name the kernel file"),
    "reference is no function": (NUMPY + INPUTS + "reference = 3\n", "no function `reference`"),
    "reference raises": (_reference("raise ValueError('no')"), "ValueError: no"),
    "reference takes other arguments": (_reference("return x", "x, y"), "'y'"),
    "reference returns nothing": (_reference("pass"), "`reference` returned nothing"),
    "reference returns text": (_reference("return 'x'"), "a value of type str"),
    "reference returns an object": (_reference("return [x, object()]"), "a value of type object"),
    "reference returns no element": (_reference("return x[:0]"), "no element"),
    "reference returns NaN": (_reference("return x * np.nan"), "NaN"),
    "reference exits": (NUMPY + INPUTS + "import os\ndef reference(x):\n    os._exit(3)\n", "ended its own process"),
    "tolerance is text": (GOOD + "tolerance = 'loose'\n", "`tolerance` in p.py is 'loose'"),
    "tolerance is negative": (GOOD + "tolerance = {'rtol': 1e-3, 'atol': -1}\n", "('atol' is -1)"),
    "tolerance has another key": (GOOD + "tolerance = {'rel': 1}\n", "the key 'rel' is unknown"),
    "shapes is a number": (GOOD + "shapes = 3\n", "`shapes` in p.py is 3"),
    "shapes has another argument": (GOOD + "shapes = [{'rows': 4}]\n", "'rows'"),
    "entry is not in the kernel file": (GOOD + "entry = 'nope'\n", "`nope`, which k.py does not define; it has `silu`"),
    "entry is a number": (GOOD + "entry = 5\n", "`entry` in p.py is 5"),
}  # fmt: skip


#: One of each kind outside the slow tests: each case starts a worker, which is what takes its time.
QUICK = {
    "does not parse", "raises on import", "exits on import", "get_inputs raises", "reference returns an object",
    "tolerance is text", "shapes has another argument", "entry is not in the kernel file",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "message"),
    [
        pytest.param(*case, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, case in INVALID.items()
    ],
)
def test_an_invalid_problem_is_wrong_input(accelopt: Command, home: Path, problem: str, message: str) -> None:
    (home / "k.py").write_text(KERNEL)
    (home / "p.py").write_text(problem)
    ended = accelopt("verify", "k.py", "--problem", "p.py", "--json")
    assert ended.code == 2, ended.out
    assert list(ended.object) == ["error"]
    assert message in ended.object["error"]["message"]


@pytest.mark.parametrize("name", ["absent.py", ".", "k.txt"])
def test_a_problem_that_is_no_file_of_its_kind_is_wrong_input(
    accelopt: Command, home: Path, name: str
) -> None:
    (home / "k.py").write_text(KERNEL)
    (home / "k.txt").write_text(GOOD)
    ended = accelopt("verify", "k.py", "--problem", name)
    assert ended.code == 2
    assert ended.out == ""
    assert "The problem" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "original", "message"),
    [
        ("entry = 'silu'\n" + GOOD, KERNEL.replace("def silu", "def other"), "`silu`, which k.py does not define"),
        (GOOD, KERNEL + "def (", "does not parse"),
        (GOOD + "from k import gone\n", KERNEL, "gone"),
    ],
    ids=["without the entry", "does not parse", "without what the problem imports"],
)  # fmt: skip
def test_an_original_that_does_not_fit_the_problem_is_wrong_input(
    accelopt: Command, home: Path, problem: str, original: str, message: str
) -> None:
    (home / "k.py").write_text(original)
    (home / "p.py").write_text(problem)
    (home / "new.py").write_text(KERNEL)
    ended = accelopt("verify", "new.py", "--problem", "p.py", "--original", "k.py")
    assert ended.code == 2, ended.out
    assert message in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidate", "code"),
    [
        (WRONG[: WRONG.index("def get_inputs")], "wrong"),
        (KERNEL.replace("m, n = x.shape", "m, n = x.shape\n    raise ValueError('no')"), "kernel-raised"),
        (KERNEL.replace("def silu", "def other"), "no-entry"),
        (KERNEL.replace("    return out\n", "    return None\n"), "no-output"),
    ],
    ids=["wrong values", "raises", "without the entry", "returns nothing"],
)
def test_a_wrong_candidate_is_refused(accelopt: Command, home: Path, candidate: str, code: str) -> None:
    (home / "k.py").write_text(KERNEL)
    (home / "p.py").write_text("entry = 'silu'\n" + GOOD)
    (home / "new.py").write_text(candidate)
    ended = accelopt("verify", "new.py", "--problem", "p.py", "--original", "k.py", "--json")
    assert ended.code == 1, ended.out
    assert any(reason["code"].startswith(code) for reason in ended.object["reasons"]), ended.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tolerance", "accepted"),
    [
        ("{'rtol': 1e-5, 'atol': 1e-6}", True),
        ("np.float32(1e-5)", True),
    ],
)
def test_rtol_and_atol_bound_the_error(accelopt: Command, home: Path, tolerance: str, accepted: bool) -> None:
    (home / "k.py").write_text(KERNEL)
    (home / "p.py").write_text(GOOD + f"tolerance = {tolerance}\n")
    ended = accelopt("verify", "k.py", "--problem", "p.py", "--json")
    assert ended.code == (0 if accepted else 1), ended.out


@pytest.mark.slow
@pytest.mark.parametrize(("rtol", "code"), [(1e-5, 1), (1e-2, 0)])
def test_rtol_decides_about_an_error_of_a_thousandth(
    accelopt: Command, home: Path, rtol: float, code: int
) -> None:
    off = KERNEL.replace(
        "nl.multiply(tile, nl.sigmoid(tile))", "nl.multiply(nl.multiply(tile, 1.001), nl.sigmoid(tile))"
    )
    (home / "k.py").write_text(off)
    (home / "p.py").write_text(GOOD + f"tolerance = {{'rtol': {rtol}, 'atol': 0}}\n")
    assert accelopt("verify", "k.py", "--problem", "p.py").code == code
