import torch
import triton
import triton.language as tl


@triton.jit
def _gelu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    z = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    t = 1 - 2 / (tl.exp(2 * z) + 1)
    tl.store(y_ptr + offs, 0.5 * x * (1 + t), mask=offs < n)


def gelu(x):
    y = torch.empty_like(x)
    _gelu[(triton.cdiv(x.numel(), 512),)](x, y, x.numel(), BLOCK=512)
    return y
