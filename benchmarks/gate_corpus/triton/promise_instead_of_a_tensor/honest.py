from typing import NamedTuple

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    x = tl.load(x_ptr + at, mask=keep, other=0.0)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tanh = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * inner))
    tl.store(y_ptr + at, 0.5 * x * (1.0 + tanh), mask=keep)


class Launch(NamedTuple):
    block: int = 1024
    warps: int = 4

    def grid(self, n):
        return (triton.cdiv(n, self.block),)


def gelu(x, launch=Launch()):
    y = torch.empty_like(x)
    gelu_kernel[launch.grid(x.numel())](x, y, x.numel(), BLOCK=launch.block, num_warps=launch.warps)
    return y
