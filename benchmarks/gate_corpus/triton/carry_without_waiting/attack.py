import torch
import triton
import triton.language as tl


@triton.jit
def _chained(x_ptr, y_ptr, carry_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    parts = tl.num_programs(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    before = tl.load(carry_ptr + row * (parts + 1) + part)
    tl.store(carry_ptr + row * (parts + 1) + part + 1, before + tl.sum(x, 0))
    tl.store(y_ptr + row * n + cols, before + tl.cumsum(x, 0), mask=cols < n)


def running_total(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    parts = triton.cdiv(n, 32)
    carry = torch.zeros((rows, parts + 1), device=x.device, dtype=torch.float32)
    _chained[(rows, parts)](x, y, carry, n, BLOCK=32)
    return y
