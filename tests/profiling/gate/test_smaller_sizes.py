"""What is too large for a check is checked at smaller sizes, and the verdict says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.gate_checker import Checker, codes

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.request import CaseOptions

pytestmark = [pytest.mark.triton, pytest.mark.slow]

#: Two launches over other parts of the same rows: the second reads what many programs of the first left.
KERNEL = """\
import torch, triton
import triton.language as tl


@triton.jit
def turn_kernel(x, out, rows, columns, B: tl.constexpr):
    across = tl.arange(0, B)
    for row in range(0, rows):
        at = row * columns + tl.program_id(0) * B + across
        inside = tl.program_id(0) * B + across < columns
        tl.store(out + at, tl.load(x + at, mask=inside) * 2, mask=inside)


@triton.jit
def add_kernel(x, out, columns, B: tl.constexpr):
    for start in range(0, columns, B):
        at = tl.program_id(0) * columns + start + tl.arange(0, B)
        inside = start + tl.arange(0, B) < columns
        tl.store(out + at, tl.load(x + at, mask=inside) + 1, mask=inside)


def double(x):
    between, out = torch.empty_like(x), torch.empty_like(x)
    rows, columns = x.shape
    turn_kernel[(triton.cdiv(columns, 16),)](x, between, rows, columns, B=16)
    add_kernel[(rows,)](between, out, columns, B=64)
    return out
"""
PROBLEM = """\
import torch

entry = "double"


def get_inputs(rows=96, columns=1600):
    return [torch.randn(rows, columns)]


def reference(x):
    return x * 2 + 1


shapes = [{"rows": 3, "columns": 40}]
"""
OF_HALF = ("triton.cdiv(columns, 16),)]", "triton.cdiv(columns, 16) // (1 + (columns > 300)),)]")


def told(
    checker: Checker, folder: Path, options: CaseOptions, *edits: tuple[str, str]
) -> tuple[bool, dict[str, str]]:
    path = folder / "double.py"
    path.write_text(KERNEL)
    (folder / "double_problem.py").write_text(PROBLEM)
    text = KERNEL.replace("import torch, triton", "import torch\nimport triton")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    verdict, _ = checker.file(path, text, "h100", options)
    return verdict.accepted, dict(zip(codes(verdict), [r.message for r in verdict.reasons], strict=True))


@pytest.mark.parametrize("edits", [(), (OF_HALF,)], ids=["right", "half of the grid"])
def test_inputs_that_are_too_large_are_made_smaller(
    checker: Checker, tmp_path: Path, edits: tuple[tuple[str, str], ...]
) -> None:
    few = CaseOptions(
        ["original"], budget=GateBudget(input_bytes=500_000, large_bytes=300_000), reading=False
    )
    accepted, reasons = told(checker, tmp_path, few, *edits)
    assert accepted is (not edits), reasons
    if not edits:
        assert "columns=" in reasons["smaller-sizes"]
        assert "instead of 1600" in reasons["smaller-sizes"]
    else:
        assert "not-written" in reasons or "wrong-result" in reasons or "not-finite" in reasons


@pytest.mark.parametrize("edits", [(), (OF_HALF,)], ids=["right", "half of the grid"])
def test_smaller_sizes_stand_for_launches_that_read_what_others_left(
    checker: Checker, tmp_path: Path, edits: tuple[tuple[str, str], ...]
) -> None:
    little = CaseOptions(
        ["original"], budget=GateBudget(interpret_work=1_000_000, large_bytes=100_000), reading=False
    )
    accepted, reasons = told(checker, tmp_path, little, *edits)
    assert accepted is (not edits), reasons
    if not edits:
        assert "stands for it" in reasons["smaller-sizes"]
