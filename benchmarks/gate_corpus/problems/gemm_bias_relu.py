"""A linear layer with ReLU in half precision, relu(a @ b + bias), with float32 accumulation."""

import torch

entry = "linear_relu"
shapes = [{"m": 40, "n": 70, "k": 96}, {"m": 128, "n": 64, "k": 100}]


def get_inputs(m=256, n=256, k=256):
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16) / k**0.5
    bias = torch.randn(n, device="cuda", dtype=torch.float16)
    return [a, b, bias]


def reference(a, b, bias):
    wide = torch.promote_types(a.dtype, torch.float32)
    return torch.relu(a.to(wide) @ b.to(wide) + bias.to(wide)).to(a.dtype)
