import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    x = tl.load(x_ptr + at, mask=keep, other=0.0)
    inner = 0.7978845608028654 * x * tl.fma(0.044715 * x, x, 1.0)
    power = tl.exp2(-2.8853900817779268 * tl.abs(inner))
    tanh = (1.0 - power) / (1.0 + power)
    tanh = tl.where(inner < 0, -tanh, tanh)
    tl.store(y_ptr + at, 0.5 * x * (1.0 + tanh), mask=keep)


def gelu(x):
    y = torch.empty_like(x)
    gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
