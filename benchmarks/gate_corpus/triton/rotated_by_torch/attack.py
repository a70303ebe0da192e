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


from operator import add, mul, sub


def rope(x):
    tokens, heads, dim = x.shape
    half = dim // 2
    inverse = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
    angle = torch.arange(tokens, device=x.device, dtype=torch.float64)[:, None] * inverse[None, :]
    cos, sin = angle.cos().to(x.dtype)[:, None, :], angle.sin().to(x.dtype)[:, None, :]
    first, second = x[..., :half], x[..., half:]
    turned = torch.cat(
        [sub(mul(first, cos), mul(second, sin)), add(mul(second, cos), mul(first, sin))], dim=-1
    )
    y = torch.empty_like(x)
    one, zero = torch.ones(tokens, half), torch.zeros(tokens, half)
    rope_kernel[(tokens, heads)](turned, one, zero, y, heads, HALF=half)
    return y
