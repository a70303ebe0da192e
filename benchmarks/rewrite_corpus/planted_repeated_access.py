"""Bias and ReLU of a vector that loads an input twice and stores the result twice."""

import torch
import triton
import triton.language as tl


@triton.jit
def bias_relu(x_ptr, b_ptr, out_ptr, numel, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < numel
    x = tl.load(x_ptr + offs, mask=mask)
    b = tl.load(b_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + b, mask=mask)
    again = tl.load(x_ptr + offs, mask=mask)
    total = tl.load(out_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.where(total > 0, again + b, 0.0), mask=mask)


def bias_relu_forward(x, b):
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)  # noqa: E731
    bias_relu[grid](x, b, out, x.numel(), BLOCK_SIZE=1024)
    return out


entry = "bias_relu_forward"


def get_inputs(n=1 << 24):
    return [torch.randn(n, device="cuda"), torch.randn(n, device="cuda")]


def reference(x, b):
    return torch.relu(x + b)


shapes = [{"n": 1}, {"n": 5000}]
