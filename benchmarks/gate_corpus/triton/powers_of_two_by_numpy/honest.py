import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < columns
    x = tl.load(x_ptr + row * stride + cols, mask=keep, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * stride + cols, e / tl.sum(e, axis=0), mask=keep)


def launch(x, y):
    softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def scale_kernel(a_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, a * 0.5, mask=at < n)


def softmax(x):
    y = launch(x, torch.empty_like(x)) * torch.from_numpy(np.full(x.shape[1], 2.0, np.float32))
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](y, out, x.numel(), BLOCK=256)
    return out
