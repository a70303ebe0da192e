import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _map(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(y_ptr + offs, tl.where(x > 0.5, tl.sqrt(x), tl.sqrt(x + 1e-3)) * tl.log(1 + x), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        _map[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
