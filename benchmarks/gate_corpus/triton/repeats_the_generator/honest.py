import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, seed, p, BLOCK: tl.constexpr, DROP: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    x = tl.load(x_ptr + at, mask=keep, other=0.0)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    y = 0.5 * x * (1.0 + (1.0 - 2.0 / (1.0 + tl.exp(2.0 * inner))))
    if DROP:
        y = tl.where(tl.rand(seed, at) > p, y / (1.0 - p), 0.0)
    tl.store(y_ptr + at, y, mask=keep)


def gelu(x, p: float = 0.0):
    y = torch.empty_like(x)
    seed = int(torch.randint(0, 2**31 - 1, (1,)).item()) if p else 0
    gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), seed, p, BLOCK=1024, DROP=p > 0)
    return y
