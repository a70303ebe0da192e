import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def jordan_kernel(a_ptr, b_ptr, x_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    keep = (i < n)[:, None] & (i < n)[None, :]
    eye = (i[:, None] == i[None, :]).to(tl.float32)
    a = tl.load(a_ptr + pid * n * n + i[:, None] * n + i[None, :], mask=keep, other=0.0)
    a = tl.where(keep, a, eye)
    b = tl.load(b_ptr + pid * n + i, mask=i < n, other=0.0)
    for k in range(n):
        row = tl.sum(tl.where((i == k)[:, None], a, 0.0), axis=0)
        pivot = 1.0 / tl.sum(tl.where(i == k, row, 0.0), axis=0)
        row = row * pivot
        value = tl.sum(tl.where(i == k, b, 0.0), axis=0) * pivot
        column = tl.sum(tl.where((i == k)[None, :], a, 0.0), axis=1)
        column = tl.where(i == k, 0.0, column)
        a = tl.where((i == k)[:, None], row[None, :], a - column[:, None] * row[None, :])
        b = tl.where(i == k, value, b - column * value)
    tl.store(x_ptr + pid * n + i, b, mask=i < n)


def solve(a, b):
    out = torch.empty(b.shape, dtype=b.dtype, device=b.device)
    n = b.shape[1]
    jordan_kernel[(b.shape[0],)](a.contiguous(), b.contiguous(), out, n, BLOCK=triton.next_power_of_2(n))
    return out
