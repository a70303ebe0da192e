"""Group norm of images (batch, channels, height, width), as in a diffusion model's residual block, followed by SiLU."""

import torch

entry = "group_norm_silu"
shapes = [
    {"batch": 1, "channels": 12, "size": 9, "groups": 3},
    {"batch": 3, "channels": 8, "size": 12, "groups": 2},
]


def get_inputs(batch=2, channels=32, size=24, groups=8):
    x = torch.randn(batch, channels, size, size, device="cuda", dtype=torch.float16)
    weight = 1 + 0.1 * torch.randn(channels, device="cuda", dtype=torch.float16)
    bias = 0.1 * torch.randn(channels, device="cuda", dtype=torch.float16)
    return [x, weight, bias, groups, 1e-5]


def reference(x, weight, bias, groups, eps):
    wide = torch.promote_types(x.dtype, torch.float32)
    y = torch.nn.functional.group_norm(x.to(wide), groups, weight.to(wide), bias.to(wide), eps)
    return torch.nn.functional.silu(y).to(x.dtype)
