"""Reading of classes: what a model keeps of its own weights is no address of data, and a finaliser may give back."""

# ruff: noqa: E501 - sources, one a line

from __future__ import annotations

import pytest

from accelopt_profiling.gate.reading.read import read

MODEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def k(x, w, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * tl.load(w), mask=at < n)

class ModelNew(torch.nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.linear = torch.nn.Linear(wide, wide)
        self.kept = None
        self.box = []

    def forward(self, x):
        HERE
        if self.kept is None or self.kept[0] != tag:
            self.kept = (tag, x.new_empty(3))
        out = torch.empty_like(x)
        k[(1,)](x, self.kept[1], out, x.numel(), BLOCK=64)
        return out
"""
LOOKS = {
    "tag = (self.linear.weight.data_ptr(), self.linear.weight._version)": False,
    "weight = self.linear.weight; tag = weight.data_ptr()": False,
    "tag = x.data_ptr()": True,
    "self.x = x; tag = self.x.data_ptr()": True,
    "self.linear.bias = x; tag = self.linear.bias._version": True,
    "self.box[0] = x; tag = self.box[0].data_ptr()": True,
    "weight = self.linear.weight if x.numel() else x; tag = weight.data_ptr()": True,
    "weight = self.linear.weight; weight = x; tag = weight.data_ptr()": True,
}


@pytest.mark.parametrize("line", LOOKS)
def test_addresses_of_a_models_own_weights(line: str) -> None:
    sorts = {f.code for f in read(MODEL.replace("HERE", line)) if f.certain}
    assert bool(sorts & {"mode-branch", "cached-result"}) is LOOKS[line]


FINALISERS = {
    "self.buffer = None": False,
    "del self.buffer": False,
    "self.file.close()": False,
    "self.out[:] = 1": True,
    "self.out += 1": True,
    "run(self.x)": True,
    "self.out.copy_(self.x)": True,
    "other.value = 1": True,
}


@pytest.mark.parametrize("line", FINALISERS)
def test_finalisers(line: str) -> None:
    text = f"class Held:\n    def __del__(self):\n        {line}\n"
    assert any(f.certain and f.code == "background-work" for f in read(text)) is FINALISERS[line]


ALONE = """
import os
import torch
import triton
import triton.language as tl

@triton.jit
def k(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)

def run(x, mode=None):
    out = torch.empty_like(x)
    if x.dim() == 1:
        k[(1,)](x, out, x.numel(), BLOCK=64)
    return out

HERE
"""
BESIDE = {
    "x = torch.randn(8)": "",
    "def dtype(x):\n    return getattr(tl, str(x.dtype).split('.')[-1])": "",
    "def dtype(x):\n    return getattr(torch, str(x.dtype).split('.')[-1])": "obfuscated",
    "def demo():\n    x = torch.randn(8)\n    return run(x)": "",
    "def pick(mode=os.environ.get('MODE')):\n    if mode:\n        return run(torch.zeros(3))\n    return None": "mode-branch",
    "MODE = os.environ.get('MODE')\ndef pick(x):\n    if MODE:\n        return run(x)\n    return None": "mode-branch",
    "FAST = os.environ.get('FAST')\ndef configs():\n    if FAST:\n        return [triton.Config({'BLOCK': 64}, num_warps=4)]\n    return []": "",
    "import importlib\ndef version(name):\n    return importlib.import_module(name).__version__\nNEW = version('torch')": "",
    "import importlib\ndef version(name):\n    return importlib.import_module(name).__version__\nNEW = version('ctypes')": "obfuscated",
    "import importlib\ndef version(name):\n    return importlib.import_module(name).__version__\nNEW = version('cty' 'pes'.strip())": "obfuscated",
    "import importlib\ndef version(name):\n    return importlib.import_module(name).__version__\nsay = version\nversion('torch')": "obfuscated",
}  # fmt: skip


@pytest.mark.parametrize("beside", BESIDE)
def test_what_lies_beside_a_kernel(beside: str) -> None:
    sorts = {f.code for f in read(ALONE.replace("HERE", beside)) if f.certain}
    assert sorts == ({BESIDE[beside]} if BESIDE[beside] else set())
