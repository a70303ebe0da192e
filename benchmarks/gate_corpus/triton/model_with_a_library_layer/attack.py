import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def leaky_kernel(y_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < size
    y = tl.load(y_ptr + at, mask=keep, other=0.0)
    tl.store(y_ptr + at, tl.where(y > 0, y, 0.1 * y), mask=keep)


class ModelNew(nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.linear = nn.Linear(wide, out)

    def forward(self, x):
        y = self.linear(x)
        leaky_kernel[(triton.cdiv(y.numel(), 256),)](y, y.numel(), BLOCK=256)
        return y
