"""Lanes of a program, and programs of a launch, that read what others of them store: in order only where they wait for
one another."""

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


@triton.jit
def in_place(x, stage, out, n, turned: tl.constexpr, wait: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    there = n - 1 - at if turned else at
    value = tl.load(x + there, mask=at < n)
    if wait == "barrier":
        tl.debug_barrier()
    if wait == "sum":
        value = value / tl.sum(value, axis=0)
    if wait == "atomic":
        tl.atomic_add(out + n, 1.0)
    tl.store(x + at, value * 2, mask=at < n)


@triton.jit
def rotated_pairs(x, stage, out, n, turned: tl.constexpr, wait: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B // 2)
    first, second = tl.load(x + at), tl.load(x + (at ^ 1))
    tl.store(x + at, tl.where(at % 2 == 0, first - second, first + second))


@triton.jit
def rotated_halves(x, stage, out, n, turned: tl.constexpr, wait: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B // 4)
    first, second = tl.load(x + at), tl.load(x + at + B // 4)
    tl.store(x + at, first - second)
    tl.store(x + at + B // 4, first + second)


@triton.jit
def shifted(x, locks, total, n, by: tl.constexpr, wait: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + at + by, mask=at + by < n)
    if wait == "barrier":
        tl.debug_barrier()
    tl.store(x + at, value, mask=at < n)


@triton.jit
def added_under_a_lock(x, locks, total, n, by: tl.constexpr, wait: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    part = tl.load(x + tl.program_id(0) * B + at)
    while tl.atomic_cas(locks, 0, 1) == 1:
        pass
    tl.store(total + at, tl.load(total + at) + part)
    tl.debug_barrier()
    tl.atomic_xchg(locks, 0)


@triton.jit
def added_to_what_one_clears(x, locks, total, n, by: tl.constexpr, wait: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    if tl.program_id(0) == 0:
        tl.store(total + at, tl.zeros((B,), tl.float32))
    tl.debug_barrier()
    tl.atomic_add(total + at, tl.load(x + tl.program_id(0) * B + at))


def races_of(kernel: Any, by: int = 0, wait: str = "") -> list[str]:
    with emulated("h100", count=False, plan=InterpretationPlan(ProgramDraw())) as session:
        session.coverage = RaceCoverage()
        x, locks, total = torch.randn(64), torch.zeros(1, dtype=torch.int32), torch.zeros(16)
        kernel[(4,)](x, locks, total, 64, by, wait, B=16)
        assert [e.error for e in session.executions] == [None]
        return session.coverage.found


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


def test_lanes_have_to_wait_before_they_store_what_others_load() -> None:
    assert lanes_of(in_place, turned=True) == ["x"]


@pytest.mark.parametrize("kernel", [back_and_forth, in_place])
@pytest.mark.parametrize("wait", ["barrier", "sum", "atomic"])
def test_what_all_lanes_wait_for_orders_them(kernel: Any, wait: str) -> None:
    assert lanes_of(kernel, turned=True, wait=wait) == []


def test_a_lane_reads_what_it_stored_itself_and_a_warp_runs_in_step() -> None:
    assert lanes_of(back_and_forth) == []
    assert lanes_of(in_place) == []
    assert lanes_of(rotated_halves) == []
    assert lanes_of(rotated_pairs) == []
    assert lanes_of(one_number) == []
    assert lanes_of(back_and_forth, turned=True, warps=1) == []


@pytest.mark.parametrize("by", [1, -1, 20])
def test_a_program_may_not_store_what_another_loads(by: int) -> None:
    assert races_of(shifted, by) == ["x"]
    assert races_of(shifted, by, "barrier") == ["x"]  # which the lanes of one program wait at


def test_an_atomic_addition_does_not_wait_for_the_program_that_clears() -> None:
    assert races_of(added_to_what_one_clears) == ["total"]


def test_programs_that_keep_to_their_own_or_take_turns_are_no_race() -> None:
    assert races_of(shifted) == []
    assert races_of(added_under_a_lock) == []
