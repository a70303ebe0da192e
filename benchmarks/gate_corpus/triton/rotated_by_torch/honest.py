from functools import lru_cache

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, heads, HALF: tl.constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1)
    lanes = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token * HALF + lanes)
    sin = tl.load(sin_ptr + token * HALF + lanes)
    base = (token * heads + head) * HALF * 2
    first = tl.load(x_ptr + base + lanes)
    second = tl.load(x_ptr + base + HALF + lanes)
    tl.store(y_ptr + base + lanes, first * cos - second * sin)
    tl.store(y_ptr + base + HALF + lanes, second * cos + first * sin)


@lru_cache(maxsize=8)
def tables(tokens, half, device, dtype):
    """cos and sin of the positions: they depend on the sizes alone."""
    inverse = 10000.0 ** (-torch.arange(half, device=device, dtype=torch.float64) / half)
    angle = torch.arange(tokens, device=device, dtype=torch.float64)[:, None] * inverse[None, :]
    return angle.cos().to(dtype).contiguous(), angle.sin().to(dtype).contiguous()


def rope(x):
    tokens, heads, dim = x.shape
    x = x.contiguous()
    cos, sin = tables(tokens, dim // 2, x.device, x.dtype)
    y = torch.empty_like(x)
    rope_kernel[(tokens, heads)](x, cos, sin, y, heads, HALF=dim // 2)
    return y
