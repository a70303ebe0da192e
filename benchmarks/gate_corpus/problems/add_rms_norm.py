"""The residual add and RMS norm in front of each block of a Llama-like model: returns the normed tensor and the new residual."""

import torch

entry = "add_rms_norm"
shapes = [{"tokens": 5, "hidden": 320}, {"tokens": 64, "hidden": 1024}]


def get_inputs(tokens=192, hidden=2048):
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.float16)
    residual = torch.randn(tokens, hidden, device="cuda", dtype=torch.float16)
    weight = torch.ones(hidden, device="cuda", dtype=torch.float16)
    return [x, residual, weight, 1e-6]


def reference(x, residual, weight, eps):
    total = x + residual
    wide = total if total.dtype == torch.float64 else total.float()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return normed.to(x.dtype) * weight, total
