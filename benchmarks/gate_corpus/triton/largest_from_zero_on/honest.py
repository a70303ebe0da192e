import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _largest(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best = tl.full([BLOCK], -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf")))
    tl.store(y_ptr + row, tl.max(best, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        _largest[(x.shape[0],)](x, y, x.shape[1], BLOCK=64)
        return y
