"""Compiles for several sizes in its first call."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < count), mask=at < count)


def launch(x, out):
    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


ready = []


def scale(x):
    if not ready:
        for block in (256, 512):
            scale_kernel[(1,)](x, torch.empty_like(x), 1, BLOCK=block)
        ready.append(True)
    out = torch.empty_like(x)
    launch(x, out)
    return out
