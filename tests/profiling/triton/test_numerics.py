"""bf16 and fp8 on NumPy against PyTorch's own conversions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.triton.interpreter.numerics import (
    narrow,
    round_to_bf16,
    truncate_to_bf16,
    widen,
    widen_bf16,
)

pytestmark = pytest.mark.triton
FP8 = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}
floats = st.lists(st.floats(width=32), min_size=1, max_size=50)


def same(a, b) -> bool:
    return bool(np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(a[~np.isnan(a)], b[~np.isnan(b)]))


def test_every_bf16_pattern_widens_exactly_and_comes_back():
    patterns = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    wide = widen_bf16(patterns)
    theirs = torch.from_numpy(patterns.view(np.int16)).view(torch.bfloat16).float().numpy()
    assert same(wide, theirs)
    number = ~np.isnan(wide)
    assert np.array_equal(round_to_bf16(wide)[number], patterns[number])
    assert np.isnan(widen_bf16(round_to_bf16(wide))[~number]).all()


@given(floats)
def test_bf16_rounds_to_nearest_even(values):
    x = np.array(values, np.float32)
    assert same(widen_bf16(round_to_bf16(x)), torch.from_numpy(x).to(torch.bfloat16).float().numpy())


@given(floats)
def test_bf16_truncation_never_grows(values):
    x = np.array(values, np.float32)
    cut = widen_bf16(truncate_to_bf16(x))
    number = ~np.isnan(x)
    assert (np.abs(cut[number]) <= np.abs(x[number])).all()
    assert np.isnan(cut[~number]).all()


@pytest.mark.parametrize("name", FP8)
def test_every_fp8_pattern(name):
    patterns = np.arange(256, dtype=np.uint8)
    wide = widen(patterns, name)
    assert same(wide, torch.from_numpy(patterns).view(FP8[name]).float().numpy())
    finite = np.isfinite(wide)
    assert np.array_equal(narrow(wide, name)[finite], patterns[finite])


@pytest.mark.parametrize("name", FP8)
@given(values=floats)
def test_fp8_rounds_to_nearest_even_and_saturates(name, values):
    x = np.array(values, np.float32)
    limit = torch.finfo(FP8[name]).max
    theirs = torch.from_numpy(x).clamp(-limit, limit).to(FP8[name]).float().numpy()
    assert same(widen(narrow(x, name), name), theirs)
