"""A sum of squares with an atomic for every element."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.atomic_add(out_ptr + offsets * 0, x * x, mask=mask)


def square_sum(x):
    out = torch.zeros(1, device=x.device, dtype=x.dtype)
    n = x.numel()
    sum_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out


entry = "square_sum"
shapes = [{"n": 1000}, {"n": 4096}]


def get_inputs(n=20000):
    return [torch.randn(n, device="cuda")]


def reference(x):
    return (x * x).sum().reshape(1)
