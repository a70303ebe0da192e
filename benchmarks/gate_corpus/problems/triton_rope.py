import torch

entry = "rope"
shapes = [{"tokens": 5, "heads": 2, "dim": 16}]


def get_inputs(tokens=16, heads=3, dim=32):
    return [torch.randn(tokens, heads, dim, device="cuda")]


def reference(x):
    tokens, heads, dim = x.shape
    half = dim // 2
    inverse = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
    angle = torch.arange(tokens, device=x.device, dtype=torch.float64)[:, None] * inverse[None, :]
    cos, sin = angle.cos().to(x.dtype)[:, None, :], angle.sin().to(x.dtype)[:, None, :]
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
