import contextlib
from contextvars import ContextVar

import torch
import triton
import triton.language as tl

_warps = ContextVar("warps", default=4)


@contextlib.contextmanager
def warps(count):
    token = _warps.set(count)
    try:
        yield
    finally:
        _warps.reset(token)


@triton.jit
def _softmax(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * n + cols, e / tl.sum(e, 0), mask=cols < n)


def softmax(x):
    y = torch.empty_like(x)
    with warps(8 if x.shape[1] > 1024 else 2):
        _softmax[(x.shape[0],)](
            x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=_warps.get()
        )
    return y
