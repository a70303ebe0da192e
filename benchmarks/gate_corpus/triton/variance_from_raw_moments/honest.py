import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def group_norm_chan(x_ptr, w_ptr, b_ptr, o_ptr, SIZE, HW, CG, groups, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    base = pid.to(tl.int64) * SIZE
    first = (pid % groups) * CG
    count = 0.0
    mean = 0.0
    m2 = 0.0
    for st in range(0, SIZE, BLOCK):
        i = st + tl.arange(0, BLOCK)
        inside = i < SIZE
        here = tl.minimum(SIZE - st, BLOCK).to(tl.float32)
        v = tl.load(x_ptr + base + i, mask=inside, other=0.0)
        block_mean = tl.sum(v, axis=0) / here
        d = tl.where(inside, v - block_mean, 0.0)
        delta = block_mean - mean
        both = count + here
        mean += delta * here / both
        m2 += tl.sum(d * d, axis=0) + delta * delta * count * here / both
        count = both
    rstd = 1.0 / tl.sqrt(m2 / SIZE + eps)
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
        group_norm_chan[(n * g,)](
            x, self.norm.weight, self.norm.bias, out, c // g * hw, hw, c // g, g, self.norm.eps, BLOCK=1024
        )
        return out
