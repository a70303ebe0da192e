"""Add two vectors. Every program handles neighbouring elements in turn, so neighbouring lanes do not."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) + lanes * tl.num_programs(0)
    inside = offsets < count
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


def add(x, y):
    out = torch.empty_like(x)
    count = out.numel()
    add_kernel[(triton.cdiv(count, 256),)](x, y, out, count, BLOCK=256)
    return out
