import warnings

import torch
import triton
import triton.language as tl


def __getattr__(name):
    if name == "prefix_sum":
        warnings.warn("prefix_sum is now running_total", DeprecationWarning, stacklevel=2)
        return running_total
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@triton.jit
def _scan(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + row * n + cols, tl.cumsum(x, 0), mask=cols < n)


def running_total(x):
    y = torch.empty_like(x)
    _scan[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
