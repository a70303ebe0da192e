"""A problem is inferred by running the file: its errors say what to change, and what cannot be mended is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command

pytestmark = [pytest.mark.slow, pytest.mark.triton]

FILE = """
import torch
import triton
import triton.language as tl


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def scaled(x_ptr, s_ptr, ids_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    source = tl.load(ids_ptr + row)
    value = tl.load(x_ptr + source * n + at, mask=at < n)
    tl.store(y_ptr + row * n + at, tanh(value) * tl.load(s_ptr + at, mask=at < n), mask=at < n)


def leaky_relu(x, s, ids, mode, *, groups):
    lead, heads, n = x.contiguous().shape
    assert mode in ("fast", "slow"), mode
    if s.shape[0] != x.shape[-1]:
        raise ValueError("one scale a column")
    if n % 96 != 0:
        raise ValueError("columns come in 96s")
    y = torch.empty_like(x)
    scaled[(lead * heads,)](x, s, ids.to(torch.int32), y, n, BLOCK=triton.next_power_of_2(n))
    return y
"""


def test_a_file_without_a_problem_is_profiled_with_inferred_arguments(accelopt: Command, home: Path) -> None:
    (home / "k.py").write_text(FILE, encoding="utf-8")
    profiled = accelopt("profile", "k.py", "--target", "h100", "--json")
    (kernel,) = profiled.object["kernels"]
    assert profiled.code == 0, profiled.out
    assert kernel["latency"]["us"] > 0
    assert kernel["correctness"]["status"] == "not checked"
    (finding,) = profiled.object["findings"]
    assert finding["code"] == "inferred-problem"
    assert not (home / "k_problem.py").exists()


def test_errors_say_what_to_change(accelopt: Command, home: Path) -> None:
    (home / "k.py").write_text(FILE, encoding="utf-8")
    written = accelopt("problem", "k.py", "--json")
    assert written.code == 0, written.err
    assert written.object["entry"] == "leaky_relu"
    assert written.object["complete"], written.object["remaining"]
    text = (home / "k_problem.py").read_text(encoding="utf-8")
    assert "def reference" not in text
    profiled = accelopt("profile", "k.py", "--target", "h100", "--json")
    (kernel,) = profiled.object["kernels"]
    assert profiled.code == 0, profiled.out
    assert kernel["latency"]["us"] > 0
    assert kernel["correctness"]["status"] == "not checked"
    assert "add `reference`" in kernel["correctness"]["detail"]
