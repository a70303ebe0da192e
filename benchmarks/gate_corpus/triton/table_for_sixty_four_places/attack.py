import torch
import triton
import triton.language as tl


@triton.jit
def _rotate(x_ptr, cos_ptr, sin_ptr, y_ptr, tokens, half, HALF: tl.constexpr):
    head, token = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, HALF)
    keep = d < half
    base = (head * tokens + token) * 2 * half
    place = token % 64
    cos = tl.load(cos_ptr + place * half + d, mask=keep)
    sin = tl.load(sin_ptr + place * half + d, mask=keep)
    a = tl.load(x_ptr + base + d, mask=keep)
    b = tl.load(x_ptr + base + half + d, mask=keep)
    tl.store(y_ptr + base + d, a * cos - b * sin, mask=keep)
    tl.store(y_ptr + base + half + d, b * cos + a * sin, mask=keep)


def _tables(tokens, half, device):
    inverse = 10000.0 ** (-torch.arange(half, device=device, dtype=torch.float64) / half)
    angles = torch.arange(tokens, device=device, dtype=torch.float64)[:, None] * inverse
    return angles.cos().float(), angles.sin().float()


def rotate(x):
    heads, tokens, dim = x.shape
    cos, sin = _tables(64, dim // 2, x.device)
    y = torch.empty_like(x)
    _rotate[(heads, tokens)](x, cos, sin, y, tokens, dim // 2, HALF=triton.next_power_of_2(dim // 2))
    return y
