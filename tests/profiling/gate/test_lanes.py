"""Lanes of a program that read what other lanes of it stored: in order only after something that they all wait for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from accelopt_profiling.gate.observe.launch_coverage import RaceCoverage
from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.capture.session import InterpretationPlan
from accelopt_profiling.triton.interpreter.sampling import ProgramDraw

pytestmark = pytest.mark.triton


@triton.jit
def back_and_forth(x, stage, out, n, turned: tl.constexpr, wait: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(stage + at, tl.load(x + at, mask=at < n), mask=at < n)
    if wait == "barrier":
        tl.debug_barrier()
    if wait == "sum":
        tl.store(out + n, tl.sum(at, axis=0))
    if wait == "atomic":
        tl.atomic_add(out + n, 1.0)
    there = n - 1 - at if turned else at
    tl.store(out + at, tl.load(stage + there, mask=at < n), mask=at < n)


@triton.jit
def other_shape(x, stage, out, n, turned: tl.constexpr, wait: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(stage + at, tl.load(x + at, mask=at < n), mask=at < n)
    block = tl.reshape(at, (4, B // 4))
    tl.store(out + block, tl.load(stage + block, mask=block < n), mask=block < n)


@triton.jit
def one_number(x, stage, out, n, turned: tl.constexpr, wait: tl.constexpr, B: tl.constexpr):
    tl.store(stage, tl.load(x))
    tl.store(out, tl.load(stage) * 2)


def lanes_of(kernel: Any, turned: bool = False, wait: str = "", warps: int = 4) -> list[str]:
    with emulated("h100", count=False, plan=InterpretationPlan(ProgramDraw())) as session:
        session.coverage = RaceCoverage()
        x, stage, out = torch.randn(50), torch.zeros(50), torch.zeros(51)
        kernel[(1,)](x, stage, out, 50, turned, wait, B=64, num_warps=warps)
        assert [e.error for e in session.executions] == [None]
        return session.coverage.lanes


def test_other_lanes_have_to_wait() -> None:
    assert lanes_of(back_and_forth, turned=True) == ["stage"]
    assert lanes_of(other_shape) == ["stage"]


@pytest.mark.parametrize("wait", ["barrier", "sum", "atomic"])
def test_what_all_lanes_wait_for_orders_them(wait: str) -> None:
    assert lanes_of(back_and_forth, turned=True, wait=wait) == []


def test_a_lane_reads_what_it_stored_itself_and_a_warp_runs_in_step() -> None:
    assert lanes_of(back_and_forth) == []
    assert lanes_of(one_number) == []
    assert lanes_of(back_and_forth, turned=True, warps=1) == []
