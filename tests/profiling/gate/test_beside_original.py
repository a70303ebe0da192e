"""Inputs that a candidate has to take only where its original does: masked rows, and rows that lie apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.drawn_values import values_of
from support.gate_checker import Checker, codes

from accelopt_profiling.gate.cases import plan_cases
from accelopt_profiling.gate.request import CaseOptions

NORMAL = np.random.default_rng(5).standard_normal((6, 20)).astype(np.float32)


def test_they_are_planned_beside_an_original_only() -> None:
    names, alone = (
        {case.name for case in plan_cases(CaseOptions(), rewritten=rewritten)} for rewritten in (True, False)
    )
    assert names - alone == {
        *("infinities", "masked elements", "other counts", "other indices", "other integers", "other signs"),
        *("exchanged axes", "matrices apart", "narrow types", "rows apart", "unequal axes"),
        *("late sinks", "one group", "places out of order", *(f"one length {n}" for n in (1, 2, 3))),
        *(f"uneven sizes {n}" for n in (1, 2, 3, 4, 5, 6)),
        *(f"wide launches {n}" for n in (1, 2, 3)),
    }


def test_a_row_is_masked_or_half_of_it_where_the_reference_is_finite_then() -> None:
    [whole], changed = values_of("masked elements", [NORMAL], work={"index of extreme"})
    assert changed
    assert np.isneginf(whole[0]).all()
    assert np.array_equal(whole[1:], NORMAL[1:])
    [half], changed = values_of(
        "masked elements",
        [NORMAL],
        work={"softmax"},
        usable=lambda inputs: bool(np.isfinite(inputs[0][0]).any()),
    )
    assert changed
    assert np.isneginf(half[0, :10]).all()
    assert np.array_equal(half[0, 10:], NORMAL[0, 10:])
    assert values_of("masked elements", [NORMAL], work={"softmax", "matmul"})[1] is False
    assert values_of("masked elements", [NORMAL], work={"norm"})[1] is False


def test_rows_lie_apart_and_hold_the_same_values() -> None:
    matrix, vector = torch.from_numpy(NORMAL), torch.ones(20)
    (apart, same), changed = values_of("rows apart", [matrix, vector])
    assert changed
    assert torch.equal(apart, matrix)
    assert apart.stride() == (36, 1)
    assert same is vector
    assert torch.isnan(torch.as_strided(apart, (16,), (1,), apart.storage_offset() + 20)).all()
    assert values_of("rows apart", [vector, 0.5])[1] is False


def test_the_matrices_of_a_stack_lie_apart_and_their_rows_together() -> None:
    stack, matrix = torch.arange(24.0).reshape(2, 3, 4), torch.from_numpy(NORMAL)
    (apart, same), changed = values_of("matrices apart", [stack, matrix])
    assert changed
    assert torch.equal(apart, stack)
    assert apart.stride() == (16, 4, 1)
    assert same is matrix
    assert values_of("matrices apart", [matrix])[1] is False


PROBLEM = """
import numpy as np

def get_inputs(m=64, n=256):
    return [np.random.normal(size=(m, n)).astype(np.float32)]

def reference(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
"""
ORIGINAL = """
import numpy as np

def kernel(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
"""
ONLINE = """
import numpy as np

def kernel(x):
    top = np.full((len(x), 1), -np.inf, np.float32)
    total = np.zeros_like(top)
    for part in (x[:, start : start + 128] for start in range(0, x.shape[1], 128)):
        higher = np.maximum(top, part.max(axis=1, keepdims=True))
        total = total * np.exp(top - SHIFT) + np.exp(part - SHIFT).sum(axis=1, keepdims=True)
        top = higher
    return np.exp(x - top) / total
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shift", "expected"),
    [("higher", ["not-finite"]), ("np.where(np.isneginf(higher), np.float32(0), higher)", [])],
    ids=["NaN", "right"],
)
def test_a_running_maximum_may_begin_with_a_masked_block(
    checker: Checker, shift: str, expected: list[str]
) -> None:
    candidate = ONLINE.replace("SHIFT", shift)
    verdict, _ = checker.numpy(candidate, PROBLEM, ORIGINAL)
    assert codes(verdict) == expected


GAPS = """
import torch
import triton
import triton.language as tl

@triton.jit
def twice_kernel(x, out, stride, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * stride
    tl.store(out + row + at, 2 * tl.load(x + row + at, mask=at < n), mask=at < n)

def twice(x):
    out = torch.empty_strided(x.size(), STRIDES, device=x.device)
    twice_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""
TWICE = """
import torch

def get_inputs(m=8, n=40):
    return [torch.randn(m, n, device="cuda")]

def reference(x):
    return 2 * x
"""


@pytest.mark.slow
@pytest.mark.triton
@pytest.mark.parametrize(
    ("strides", "expected"), [("x.stride()", []), ("(x.stride(0) + 8, 1)", ["wrong-layout"])]
)
def test_an_output_may_have_the_gaps_that_the_original_leaves(
    checker: Checker, strides: str, expected: list[str], tmp_path: Path
) -> None:
    original = GAPS.replace("STRIDES", "x.stride()")
    candidate = GAPS.replace("STRIDES", strides).replace("2 * tl.load", "2.0 * tl.load")
    if expected:
        candidate = candidate.replace("x, out, stride, n", "x, out, stride, apart, n")
        candidate = candidate.replace("out + row", "out + tl.program_id(0) * apart")
        candidate = candidate.replace("x.stride(0), x.shape", "x.stride(0), out.stride(0), x.shape")
    path = tmp_path / "twice.py"
    path.write_text(original)
    (tmp_path / "twice_problem.py").write_text(TWICE)
    verdict, _ = checker.file(path, candidate, "h100", CaseOptions(["original", "rows apart"], shapes=0))
    assert [code for code in codes(verdict) if not verdict.accepted] == expected, verdict.reasons
