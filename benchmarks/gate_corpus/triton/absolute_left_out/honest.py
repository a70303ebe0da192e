import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _unit(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + row * n + cols, x / (tl.sum(tl.abs(x), 0) + 1e-6), mask=cols < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        _unit[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
