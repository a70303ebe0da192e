"""Loops of interpreted kernels: scalars of Triton's types, and few iterations that stand for many."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from accelopt_profiling.recording import emulation as recording_emulation
from accelopt_profiling.recording.emulation import RecordingEmulation
from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.interpreter.loops import SAMPLED, sampled_iterations
from accelopt_profiling.triton.interpreter.work import OPERATION

pytestmark = pytest.mark.triton


@triton.jit
def walk(x, y, n, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        total += tl.load(
            x + start.to(tl.int64) + tl.arange(0, B), mask=start + tl.arange(0, B) < n, other=0.0
        )
    for start in tl.range(0, n, B):
        total += tl.load(x + start + tl.arange(0, B), mask=start + tl.arange(0, B) < n, other=0.0)
    for part in tl.static_range(2):
        tl.store(y + part * B + tl.arange(0, B), total)


def counted(hollow: bool, n: int = 16 * 1000):
    with emulated("h100", hollow=hollow) as session:
        x, y = torch.randn(n, device="cuda"), torch.empty(32, device="cuda")
        walk[(1,)](x, y, n, B=16)
    (execution,) = session.executions
    assert execution.error is None
    return execution.counts, x, y


@pytest.mark.slow
def test_values_are_those_of_all_iterations_where_they_matter():
    counts, x, y = counted(hollow=False)
    torch.testing.assert_close(y[:16], 2 * x.view(-1, 16).sum(0), rtol=1e-4, atol=1e-4)
    assert not counts.loops_sampled


@pytest.mark.slow
def test_a_sample_of_iterations_counts_as_all_of_them():
    exact, *_ = counted(hollow=False)
    sampled, *_ = counted(hollow=True)
    assert sampled.loops_sampled
    for name in ("unique_load_sectors", "load_sectors", "unique_store_sectors"):
        totals = getattr(exact, name)
        assert getattr(sampled, name) == {n: pytest.approx(v, rel=0.01) for n, v in totals.items()}
    for line, costs in exact.lines.items():
        assert sampled.lines[line].load_bytes == pytest.approx(costs.load_bytes, rel=0.01)


def test_the_sample_does_not_fall_into_step_with_what_happens_at_times():
    picked = sampled_iterations(SAMPLED * 8, SAMPLED)
    assert sorted(set(picked)) == picked
    assert len({n % 8 for n in picked}) > 4


def test_a_launch_that_takes_too_long_is_sampled_from_there_on():
    n = 16 * 1000
    with emulated("h100", loop_work=100 * OPERATION) as session:
        x, y = torch.randn(n, device="cuda"), torch.empty(32, device="cuda")
        walk[(1,)](x, y, n, B=16)
        assert session.work < 500 * OPERATION
    (execution,) = session.executions
    assert execution.error is None
    assert not execution.faults
    assert execution.counts.loops_sampled
    assert not execution.complete
    loads = sorted(c.load_bytes for c in execution.counts.lines.values() if c.load_bytes)
    assert loads == [pytest.approx(4 * n, rel=0.01)] * 2
    assert y.isnan().all(), "what it wrote is not known"


def test_a_launch_that_would_take_too_long_is_recorded_and_given_up_in_its_loop(monkeypatch):
    monkeypatch.setattr(recording_emulation, "LAUNCH_WORK", 100 * OPERATION)
    emulation = RecordingEmulation("h100")
    try:
        x, y = torch.randn(16 * 1000, device="cuda"), torch.empty(32, device="cuda")
        walk[(1,)](x, y, x.numel(), B=16)
        assert emulation._session.work < 500 * OPERATION
    finally:
        emulation._context.__exit__(None, None, None)
    assert (emulation.executed, emulation.skipped) == (0, 1)
