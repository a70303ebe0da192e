"""SiLU in small blocks."""

import torch
import triton
import triton.language as tl

BLOCK = 64


@triton.jit
def silu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


def silu(x):
    y = torch.empty_like(x)
    n = x.numel()
    silu_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK=BLOCK)
    return y


entry = "silu"
shapes = [{"n": 1000}, {"n": 4096}]


def get_inputs(n=100000):
    return [torch.randn(n, device="cuda")]


def reference(x):
    return torch.nn.functional.silu(x)
