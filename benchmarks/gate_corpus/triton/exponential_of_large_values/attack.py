import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def plus_kernel(x_ptr, shift_ptr, out_ptr, count, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    x += tl.load(shift_ptr + at % columns, mask=at < count, other=0.0)
    tl.store(out_ptr + at, tl.log(1 + tl.exp(x)), mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x, shift):
        out = torch.empty_like(x)
        plus_kernel[(triton.cdiv(x.numel(), 512),)](x, shift, out, x.numel(), x.shape[1], BLOCK=512)
        return out
