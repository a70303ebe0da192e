"""Launches of which only some programs are interpreted: what the others write, and how much is checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.gate_checker import Checker

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.request import CaseOptions

pytestmark = [pytest.mark.triton, pytest.mark.slow]

KERNEL = """\
import torch, triton
import triton.language as tl


@triton.jit
def double_kernel(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    y = tl.load(x + at, mask=at < n) * 2
    tl.store(out + at, y, mask=at < n)


def double(x):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 64)
    double_kernel[(blocks,)](x, out, x.numel(), B=64)
    return out
"""
PROBLEM = """\
import torch

entry = "double"


def get_inputs():
    return [torch.randn(300, 640)]


def reference(x):
    return x * 2
"""
IDLE = "    idle = 0\n    for step in range(0, 200):\n        idle += step\n"
ENDLESS = "    going = tl.program_id(0) * 0\n    while going < 1:\n        going *= 1\n"
LOAD, STORE, GRID = "    y = tl.load(", "tl.store(out + at, y, mask=at < n)", "[(blocks,)]"
WRITTEN = "tl.store(out + at, y, mask=(at < n) & (tl.program_id(0) != 777))"
BEYOND = "tl.store(out + at + (tl.program_id(0) == 1001) * 200000, y, mask=at < n)"
HALF = "[(blocks // 2,)]"
#: So little that 3000 programs are too many, and that an endless loop is soon ended.
BUDGET = GateBudget(interpret_work=400_000, most_work=1_000_000_000, large_bytes=1 << 30)
OPTIONS = CaseOptions(["original", "small"], budget=BUDGET, reading=False)

CANDIDATES = {
    "larger blocks": ([("B=64", "B=128"), ("numel(), 64", "numel(), 128")], ""),
    "an idle loop": ([(LOAD, IDLE + LOAD)], ""),
    "half of the grid": ([(GRID, HALF)], "not-written"),
    "half of the grid after an idle loop": ([(LOAD, IDLE + LOAD), (GRID, HALF)], "not-written"),
    "half of the block": ([("B=64", "B=32")], "not-written"),
    "one block left out": ([(STORE, WRITTEN)], "not-written"),
    "wrong in one block of five": ([("n) * 2", "n) * (2 + (tl.program_id(0) % 5 == 3))")], "wrong-result"),
    "beyond the end in one block": ([(STORE, BEYOND)], "kernel-raised"),
    "an endless loop": ([(LOAD, ENDLESS + LOAD)], "not-judged"),
}


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_element_is_shown_to_be_written(checker: Checker, name: str, tmp_path: Path) -> None:
    edits, code = CANDIDATES[name]
    candidate = KERNEL
    for old, new in edits:
        assert old in candidate
        candidate = candidate.replace(old, new)
    path = tmp_path / "double.py"
    path.write_text(KERNEL)
    (tmp_path / "double_problem.py").write_text(PROBLEM)
    verdict, _ = checker.file(path, candidate, "h100", OPTIONS)
    assert [r.code for r in verdict.reasons if r.code != "partly-checked"][:1] == [code] * bool(code), (
        verdict.reasons
    )
    assert verdict.accepted is (not code)
    if verdict.accepted:
        large = [c for c in verdict.checks if not c["case"].startswith(("derived", "long axis", "uneven"))]
        assert [c["complete"] for c in large if "complete" in c] == [False] * 3
        assert all(0.005 < c["checked"] < 0.5 for c in large if "checked" in c)


RUNS_ITSELF = '\n\nif __name__ == "__main__":\n    double(torch.randn(300, 640, device="cuda"))\n'


def test_how_much_of_a_file_that_runs_itself_is_interpreted_follows_from_the_original(
    checker: Checker, tmp_path: Path
) -> None:
    path = tmp_path / "double.py"
    path.write_text(KERNEL + RUNS_ITSELF)
    shares = {}
    for name in ("larger blocks", "an idle loop", "half of the grid after an idle loop"):
        edits, code = CANDIDATES[name]
        candidate = KERNEL + RUNS_ITSELF
        for old, new in edits:
            candidate = candidate.replace(old, new)
        verdict, _ = checker.file(path, candidate, "h100", OPTIONS)
        assert verdict.accepted is (not code), verdict.reasons
        assert code in ("", verdict.reasons[0].code)
        shares[name] = verdict.checks[0].get("checked")
    assert 0.005 < shares["larger blocks"] < 0.5
    assert shares["an idle loop"] > 0.5 * shares["larger blocks"]


#: A number that no array's size depends on, and as many turns of a loop: beyond 16 bits it takes minutes.
TURNS_EDITS = [
    ("double(x)", "double(x, turns)"), ("out, n, B", "out, n, turns, B"), ("x.numel(), B", "x.numel(), turns, B"),
    (LOAD, IDLE.replace("200", "turns") + LOAD),
]  # fmt: skip
#: Each program waits for the one before it, as in a chained scan.
WAITS = "    while (tl.atomic_add(done + tl.program_id(0), 0) == 0) & (tl.program_id(0) > 0):\n        pass\n"
MADE = "    done = torch.zeros(999, dtype=torch.int32, device=x.device)\n"
WAITS_EDITS = [
    ("(x, out,", "(x, done, out,"), ("    blocks =", f"{MADE}    blocks ="), (LOAD, WAITS + LOAD),
    (STORE, f"{STORE}\n    tl.atomic_xchg(done + tl.program_id(0) + 1, 1)"),
]  # fmt: skip
TOO_MUCH = "the original takes too much work there"


@pytest.mark.parametrize(
    ("edits", "inputs", "left_out"),
    [(TURNS_EDITS, "torch.randn(rows, 64), 2 * turns", 1), (WAITS_EDITS, "torch.randn(rows, 64 * turns)", 0)],
    ids=["a loop over a number", "programs that wait for one another"],
)
def test_a_shape_of_the_gates_at_which_the_original_has_no_end_is_left_out(
    checker: Checker, edits: list[tuple[str, str]], inputs: str, left_out: int, tmp_path: Path
) -> None:
    original = KERNEL
    for old, new in edits:
        assert old in original
        original = original.replace(old, new)
    path = tmp_path / "double.py"
    path.write_text(original)
    problem = PROBLEM.replace("get_inputs()", "get_inputs(rows=4, turns=2)")
    problem = problem.replace("torch.randn(300, 640)", inputs).replace("reference(x)", "reference(x, *_)")
    (tmp_path / "double_problem.py").write_text(problem)
    options = CaseOptions(budget=GateBudget(interpret_work=200_000_000), reading=False)
    verdict, _ = checker.file(path, original.replace("* 2\n", "* 2.0\n"), "h100", options)
    assert verdict.accepted, verdict.reasons
    assert [c["why"] for c in verdict.checks].count(TOO_MUCH) == left_out
    assert verdict.launchable.status == "yes"
