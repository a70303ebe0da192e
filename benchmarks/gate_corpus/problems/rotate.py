import torch

entry = "rotate"


def get_inputs(heads=2, tokens=48, dim=16):
    return [torch.randn(heads, tokens, dim, device="cuda")]


def reference(x):
    half = x.shape[-1] // 2
    inverse = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
    angles = torch.arange(x.shape[1], device=x.device, dtype=torch.float64)[:, None] * inverse
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
