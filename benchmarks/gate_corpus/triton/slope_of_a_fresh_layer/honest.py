import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def prelu_kernel(x_ptr, w_ptr, y_ptr, n, channels, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    x = tl.load(x_ptr + at, mask=keep)
    slope = tl.load(w_ptr + at % channels, mask=keep)
    tl.store(y_ptr + at, tl.where(x > 0, x, slope * x), mask=keep)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.full((channels,), 0.25))

    def forward(self, x):
        y = torch.empty_like(x)
        blocks = triton.cdiv(x.numel(), 512)
        prelu_kernel[(blocks,)](x, self.weight, y, x.numel(), x.shape[1], BLOCK=512)
        return y
