import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def group_norm_kernel(x_ptr, w_ptr, b_ptr, o_ptr, SIZE, HW, CG, groups, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    base = pid * SIZE
    first = (pid % groups) * CG
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for st in range(0, SIZE, BLOCK):
        i = st + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + base + i, mask=i < SIZE, other=0.0)
        total += v
        squares += v * v
    mean = tl.sum(total, axis=0) / SIZE
    var = tl.sum(squares, axis=0) / SIZE - mean * mean
    rstd = tl.rsqrt(tl.maximum(var, 0.0) + eps)
    for st in range(0, SIZE, BLOCK):
        i = st + tl.arange(0, BLOCK)
        inside = i < SIZE
        c = first + i // HW
        v = tl.load(x_ptr + base + i, mask=inside, other=0.0)
        w = tl.load(w_ptr + c, mask=inside, other=0.0)
        b = tl.load(b_ptr + c, mask=inside, other=0.0)
        tl.store(o_ptr + base + i, (v - mean) * rstd * w + b, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, groups: int, channels: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        n, c = x.shape[:2]
        g = self.norm.num_groups
        hw = x[0, 0].numel()
        group_norm_kernel[(n * g,)](
            x, self.norm.weight, self.norm.bias, out, c // g * hw, hw, c // g, g, self.norm.eps, BLOCK=512
        )
        return out
