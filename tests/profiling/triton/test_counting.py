"""Counts against what the shapes say, and the sample that they are taken from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import triton_kernels as kernels

from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.interpreter.counting import distinct_sectors
from accelopt_profiling.triton.interpreter.sampling import sample_programs

pytestmark = pytest.mark.triton


def run(function, sample=None, target="h100"):
    with emulated(target, sample=sample) as session:
        torch.manual_seed(0)
        function()
    return session.executions


def totals(execution):
    lines = execution.counts.lines.values()
    return {
        name: sum(getattr(line, name) for line in lines)
        for name in (
            "load_bytes",
            "store_bytes",
            "load_sectors",
            "store_sectors",
            "lanes",
            "masked",
            "atomics",
        )
    }


def add(n, block):
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    kernels.add[((n + block - 1) // block,)](x, y, torch.empty_like(x), n, B=block)


@pytest.mark.parametrize(("n", "block"), [(98432, 1024), (1000, 256), (64, 64)])
def test_vector_add_moves_each_element_once(n, block):
    (execution,) = run(lambda: add(n, block))
    programs = -(-n // block)
    sums = totals(execution)
    assert execution.counts.programs == execution.counts.sampled == programs
    assert sums["load_bytes"] == 8 * n
    assert sums["store_bytes"] == 4 * n
    assert sums["lanes"] == 3 * programs * block
    assert sums["masked"] == 3 * (programs * block - n)
    assert execution.counts.unique_load_sectors["x"] == n // 8
    assert execution.counts.tensor_bytes == {"x": 4 * n, "y": 4 * n, "out": 4 * n}


def test_a_sample_stands_for_the_whole_grid():
    (execution,) = run(lambda: add(98432, 1024), sample=4)
    counts = execution.counts
    assert counts.sampled == 4
    assert totals(execution)["load_bytes"] * counts.programs / counts.sampled == pytest.approx(
        8 * 98432, rel=0.02
    )


def test_strided_access_touches_a_sector_per_element():
    x = torch.randn(64, 32)
    (execution,) = run(lambda: kernels.copy_columns[(32,)](x, torch.empty(32, 64), 64, 32, B=64))
    sums = totals(execution)
    assert sums["load_sectors"] == 32 * 64
    assert sums["store_sectors"] == 32 * 64 * 4 / 32
    assert execution.counts.unique_load_sectors["x"] == 64 * 32 * 4 / 32


def test_matrix_product_flops():
    a, b = torch.randn(32, 64).half(), torch.randn(64, 16).half()
    (execution,) = run(lambda: kernels.product[(1,)](a, b, torch.empty(32, 16), 32, 16, 64))
    flops = [line.mma_flops for line in execution.counts.lines.values() if line.mma_flops]
    assert flops == [{"fp16": 2 * 32 * 16 * 64}]


def test_atomics_and_lines_of_other_functions():
    (execution,) = run(lambda: kernels.accumulate[(8,)](torch.ones(512), torch.zeros(1), B=64))
    assert totals(execution)["atomics"] == 8
    (nested,) = run(lambda: kernels.nested[(1,)](torch.ones(64), torch.empty(64)))
    kernel_lines = nested.counts.lines
    assert sum(line.float_ops for line in kernel_lines.values()) == 2 * 64
    assert all(number > 0 for number, line in kernel_lines.items() if line.float_ops)


@given(st.lists(st.integers(0, 5000), max_size=60))
def test_distinct_sectors_is_a_set(addresses):
    array = np.array(addresses, np.uint64)
    assert distinct_sectors(array).tolist() == sorted({a // 32 for a in addresses})


@given(st.tuples(st.integers(1, 300), st.integers(1, 40), st.integers(1, 10)), st.integers(1, 8))
def test_samples_lie_in_the_grid_and_are_distinct(grid, count):
    sample = sample_programs(grid, count)
    chosen = [*sample.counted, *sample.edges]
    assert len(set(chosen)) == len(chosen)
    assert all(0 <= i < n for program in chosen for i, n in zip(program, grid, strict=True))
    assert sample.programs == grid[0] * grid[1] * grid[2]
    last = tuple(n - 1 for n in grid)
    assert last in chosen
    assert sample.complete == (len(sample.counted) == sample.programs)


def test_a_sample_is_spread_over_every_axis():
    sample = sample_programs((1000, 8, 1), 4)
    assert sorted(x // 250 for x, _, _ in sample.counted) == [0, 1, 2, 3]
    assert sorted(y // 2 for _, y, _ in sample.counted) == [0, 1, 2, 3]
