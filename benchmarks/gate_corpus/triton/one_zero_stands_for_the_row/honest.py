import torch
import triton
import triton.language as tl


@triton.jit
def _unit(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    largest = tl.max(tl.abs(tl.load(x_ptr + row * n + cols, mask=keep, other=0.0)), 0)
    if largest == 0.0:
        tl.store(y_ptr + row * n + cols, tl.zeros([BLOCK], tl.float32), mask=keep)
        return
    x = tl.load(x_ptr + row * n + cols, mask=keep, other=0.0)
    norm = tl.sqrt(tl.sum(x * x, 0))
    tl.store(y_ptr + row * n + cols, x / tl.maximum(norm, 1e-12), mask=keep)


def unit_rows(x):
    rows, n = x.shape
    y = torch.empty_like(x)
    _unit[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y
