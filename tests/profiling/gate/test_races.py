"""Kernels that are right only while programs run one after another, and results that did not come from kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.gate_checker import Checker, codes

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.request import CaseOptions

pytestmark = pytest.mark.triton

PROBLEM = """
import torch

def get_inputs(n=128):
    return [torch.randn(n, device="cuda")]

def reference(x):
    return x.sum().reshape(1)
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def sum_kernel(x_ptr, y_ptr, part_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0)
    HERE

def total(x):
    y, parts = torch.zeros(1, device=x.device), torch.zeros(triton.cdiv(x.numel(), 16), device=x.device)
    sum_kernel[(triton.cdiv(x.numel(), 16),)](x, y, parts, x.numel(), BLOCK=16)
    return RESULT
"""
#: What the kernel does with its part of the sum, what is returned, and what the gate says.
ENDINGS = {
    "tl.store(y_ptr, tl.load(y_ptr) + part)": ("y", {"race"}),
    "tl.atomic_add(y_ptr, part)": ("y", set()),
    "tl.store(part_ptr + tl.program_id(0), part)": ("parts.sum().reshape(1)", set()),
    # what a program stores beyond its own place the next one overwrites, here
    "two = tl.arange(0, 2)\n    at = tl.program_id(0) + two\n"
    "    tl.store(part_ptr + at, tl.where(two == 0, part, 0.0), mask=at < tl.num_programs(0))": (
        "parts.sum().reshape(1)",
        {"race"},
    ),
    # two programs may store the same there
    "two = tl.arange(0, 2)\n    more = tl.sum(tl.load(x_ptr + at + 16, mask=at + 16 < n, other=0.0), axis=0)\n"
    "    at = tl.program_id(0) + two\n"
    "    tl.store(part_ptr + at, tl.where(two == 0, part, more), mask=at < tl.num_programs(0))": (
        "parts.sum().reshape(1)",
        set(),
    ),
    "tl.store(part_ptr + tl.program_id(0), part * 0)": (
        "x.sum().reshape(1)",
        {"kernel-unused", "framework-compute"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("line", ENDINGS)
def test_where_a_sum_comes_from(checker: Checker, line: str, tmp_path: Path) -> None:
    result, expected = ENDINGS[line]
    text = KERNEL.replace("HERE", line).replace("RESULT", result)
    path = tmp_path / "total.py"
    path.write_text(text)
    (tmp_path / "total_problem.py").write_text(PROBLEM)
    options = CaseOptions(distributions=["original"], shapes=0, budget=GateBudget(repeats=3), reading=False)
    verdict, _ = checker.file(path, text, "h100", options)
    assert verdict.accepted is (not expected), verdict.reasons
    assert expected <= set(codes(verdict)), verdict.reasons


IN_PLACE = """
import torch
import triton
import triton.language as tl

@triton.jit
def rows_kernel(x_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row * n + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    HERE

def rows(x):
    y = x.clone()
    rows_kernel[(y.shape[0],)](y, y.shape[1], BLOCK=triton.next_power_of_2(y.shape[1]))
    return y
"""
#: Each program works in its own row: what was tried side by side, and undone, is no program's access.
ROWS = {
    "in place": "tl.store(x_ptr + at, 2 * tl.load(x_ptr + at, mask=mask), mask=mask)",
    "stores first where programs differ": (
        "x = tl.load(x_ptr + at, mask=mask)\n    tl.store(x_ptr + at, x + x, mask=mask)\n"
        "    if row % 2:\n        tl.store(x_ptr + at, 2 * x, mask=mask)"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("lines", ROWS.values(), ids=ROWS)
def test_programs_that_work_in_place_do_not_race(checker: Checker, lines: str, tmp_path: Path) -> None:
    text = IN_PLACE.replace("HERE", lines)
    path = tmp_path / "rows.py"
    path.write_text(text)
    problem = "import torch\n\ndef get_inputs(m=48, n=40):\n    return [torch.randn(m, n, device='cuda')]\n"
    (tmp_path / "rows_problem.py").write_text(f"{problem}\ndef reference(x):\n    return 2 * x\n")
    verdict, _ = checker.file(path, text, "h100", CaseOptions(["original"], reading=False))
    assert verdict.accepted, verdict.reasons
