import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_online(x_ptr, o_ptr, N, temp, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    m = -1.0e38
    s = 0.0
    for st in range(0, N, BLOCK):
        c = st + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row + c, mask=c < N, other=-float("inf")) / temp
        new = tl.maximum(m, tl.max(v, axis=0))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(v - new), axis=0)
        m = new
    for st in range(0, N, BLOCK):
        c = st + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row + c, mask=c < N, other=-float("inf")) / temp
        tl.store(o_ptr + row + c, tl.exp(v - m) / s, mask=c < N)


class ModelNew(nn.Module):
    def __init__(self, temperature: float):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        x = x.contiguous()
        N = x.shape[-1]
        out = torch.empty_like(x)
        softmax_online[(x.numel() // N,)](x, out, N, self.temperature, BLOCK=128)
        return out
