"""A module of torch that launches its kernel itself is profiled by a call that its layers accept."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command

pytestmark = [pytest.mark.slow, pytest.mark.triton]

CONVOLUTION = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def biased(x_ptr, b_ptr, y_ptr, n, C, HW, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask) + tl.load(b_ptr + (at // HW) % C, mask=mask)
    tl.store(y_ptr + at, tl.maximum(x, 0), mask=mask)

class Biased(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, bias=False)
        self.bias = nn.Parameter(torch.randn(out_channels))

    def forward(self, x):
        y = self.conv(x)
        out = torch.empty_like(y)
        grid = lambda meta: (triton.cdiv(y.numel(), meta["BLOCK"]),)
        biased[grid](y, self.bias, out, y.numel(), y.shape[1], y.shape[2] * y.shape[3], BLOCK=1024)
        return out
"""


def test_a_convolution_says_its_rank_and_channels(accelopt: Command, home: Path) -> None:
    (home / "layer.py").write_text(CONVOLUTION, encoding="utf-8")
    written = accelopt("problem", "layer.py", "--target", "h100", "--json")
    assert written.code == 0, written.err
    text = (home / "layer_problem.py").read_text(encoding="utf-8")
    assert 'entry = "Biased"' in text
    profiled = accelopt("profile", "layer.py", "--target", "h100", "--json")
    (kernel,) = profiled.object["kernels"]
    assert kernel["latency"]["us"] > 0
    assert not [f for f in kernel["findings"] if f["severity"] == "error"]
