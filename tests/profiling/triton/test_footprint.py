"""Where a launch writes is found without what it writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.capture.session import InterpretationPlan
from accelopt_profiling.triton.interpreter.coverage import SampleCoverage, known_elements
from accelopt_profiling.triton.interpreter.footprint import Footprint, FootprintFinder
from accelopt_profiling.triton.interpreter.interpret import named_arguments
from accelopt_profiling.triton.interpreter.memory_bounds import LaunchMemory, regions_of
from accelopt_profiling.triton.interpreter.sampling import ProgramDraw

pytestmark = pytest.mark.triton


@triton.jit
def tiles(x, out, rows, columns, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    across = tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, columns, B):
        places = at[:, None] * columns + k + tl.arange(0, B)[None, :]
        total += tl.load(x + places, mask=at[:, None] < rows, other=0.0)
    total = total / tl.max(total, axis=1)[:, None]
    inside = (at[:, None] < rows) & (across[None, :] < columns)
    tl.store(out + at[:, None] * columns + across[None, :], total, mask=inside)


@triton.jit
def scattered(places, out, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + tl.load(places + at), at)


@triton.jit
def strided(out, n, B: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, B), tl.num_programs(0)):
        if tile % 3 != 1:
            at = tile * B + tl.arange(0, B)
            tl.store(out + at, at.to(tl.float32), mask=at < n)


@triton.jit
def queue(counter, out, B: tl.constexpr):
    at = tl.atomic_add(counter, 1) * B + tl.arange(0, B)
    tl.store(out + at, at)


@triton.jit
def in_place(x, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    old = tl.load(x + at)
    tl.store(x + at, old + 1, mask=old > 0)


def footprint(kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> Footprint | None:
    """Capture one launch and find what it writes."""
    with emulated("h100", sample=1) as session:
        kernel[grid](*arguments, **constants)
    launch = session.launches[0]
    memory = LaunchMemory(regions_of(named_arguments(launch)))
    writes = FootprintFinder().find(launch, memory, SampleCoverage())
    assert not memory.faults
    return writes


def written(writes: Footprint | None, tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    assert writes is not None
    return writes.written[tensor.untyped_storage().data_ptr()].touched.reshape(tensor.shape)


def test_tiles_are_found_without_their_values() -> None:
    x, out = torch.zeros(40, 48), torch.zeros(40, 48)
    writes = footprint(tiles, (3, 3), x, out, 40, 48, B=16)
    assert written(writes, out).all()
    assert writes is not None
    assert not writes.reads
    writes = footprint(tiles, (3, 2), x, out, 40, 48, B=16)
    assert written(writes, out)[:, :32].all()
    assert not written(writes, out)[:, 32:].any()


def test_addresses_that_are_data_are_loaded() -> None:
    places, out = torch.arange(64, dtype=torch.int32).flip(0) * 2, torch.zeros(128, dtype=torch.int32)
    writes = footprint(scattered, (8,), places, out, B=8)
    assert written(writes, out).tolist() == [n % 2 == 0 for n in range(128)]


def test_programs_whose_loops_differ() -> None:
    out = torch.zeros(1000)
    writes = footprint(strided, (7,), out, 1000, B=16)
    assert written(writes, out).tolist() == [n // 16 % 3 != 1 for n in range(1000)]


@pytest.mark.parametrize("kernel", [queue, in_place])
def test_what_depends_on_the_launch_itself_is_not_guessed(kernel: Any) -> None:
    tensors = [torch.ones(1, dtype=torch.int32), torch.ones(64, dtype=torch.int32)]
    assert footprint(kernel, (8,), *tensors[-kernel.arg_names.index("B") :], B=8) is None


def test_elements_that_no_program_writes_stay_known() -> None:
    x = torch.rand(512, 64)
    plan = InterpretationPlan(ProgramDraw(0.1, seed=3))
    for grid, share in (((32, 4), 1.0), ((16, 4), 0.5)):
        out = torch.full((512, 64), -1.0)
        with emulated("h100", count=False, plan=plan) as session:
            tiles[grid](x, out, 512, 64, B=16)
        mask = known_elements(session.coverage, [out])[0]
        untouched = mask & (out.numpy() == -1.0)
        assert untouched.mean() == 1.0 - share
        assert 0.1 < (mask & ~untouched).mean() < 0.3


@triton.jit
def overwritten(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at))
    if tl.program_id(0) == 41:
        every = tl.arange(0, 512)
        tl.store(out + every, every.to(tl.float32))


def test_elements_that_several_programs_write_are_not_known() -> None:
    x, out = torch.rand(4096), torch.zeros(4096)
    with emulated("h100", count=False, plan=InterpretationPlan(ProgramDraw(0.2, seed=3))) as session:
        overwritten[(512,)](x, out, 4096, B=8)
    mask = known_elements(session.coverage, [out])[0]
    assert not mask[:512].any()
    assert 0.15 < mask[512:].mean() < 0.3


def test_a_write_out_of_bounds_in_a_program_that_was_not_run() -> None:
    out = torch.zeros(64 * 8 - 1)
    with emulated("h100", count=False, plan=InterpretationPlan(ProgramDraw(0.0, seed=3))) as session:
        strided_without_mask[(64,)](out, 40, B=8)
    assert session.executions[0].faults[0].program == (40, 0, 0)


@triton.jit
def strided_without_mask(out, odd, B: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * B + tl.arange(0, B) + (pid == odd).to(tl.int32) * 1000
    tl.store(out + at, at.to(tl.float32), mask=pid < 63)


def test_a_few_turns_draw_all_programs() -> None:
    union: set[tuple[int, int, int]] = set()
    for turn in range(13):
        drawn = ProgramDraw(0.125, seed=5, turn=turn).programs((16, 16, 1))
        assert {(0, 0, 0), (15, 0, 0), (0, 15, 0), (15, 15, 0)} <= set(drawn)
        assert len(drawn) <= 36
        union |= set(drawn)
    assert len(union) == 256


@triton.jit
def one_reads_beyond(x, out, odd, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    beyond = (tl.program_id(0) == odd) * 5000
    tl.store(out + at, tl.load(x + at + beyond))


@triton.jit
def reads_where_data_says(x, places, out, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + tl.load(places + at)))


def test_a_read_out_of_bounds_in_a_program_that_was_not_run() -> None:
    x, out = torch.zeros(64 * 8), torch.zeros(64 * 8)
    plan = InterpretationPlan(ProgramDraw(0.0, seed=3))
    with emulated("h100", count=False, plan=plan) as session:
        one_reads_beyond[(64,)](x, out, 41, B=8)
    [fault] = session.executions[0].faults
    assert (fault.operation, fault.tensor, fault.program) == ("load", "x", (41, 0, 0))
    places = torch.arange(64 * 8, dtype=torch.int32)
    places[41 * 8] = 5000
    with emulated("h100", count=False, plan=plan) as session:
        reads_where_data_says[(64,)](x, places, out, B=8)
        one_reads_beyond[(64,)](x, out, 99, B=8)
    assert [e.faults for e in session.executions] == [[], []]


def test_a_session_that_repeats_another_interprets_the_same_programs():
    plan = InterpretationPlan(ProgramDraw(0.0), budget=100)
    assert plan.more(1, rest=200.0, spent=50) == 0.25
    assert plan.more(1, rest=180.0, spent=40) == 0.25
    assert plan.more(2, rest=20.0, spent=40) == 1.0
