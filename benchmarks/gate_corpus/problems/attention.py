import torch

entry = "attend"


def get_inputs(heads=2, tokens=64, dim=32):
    return [torch.randn(heads, tokens, dim, device="cuda") for _ in range(3)]


def reference(q, k, v):
    return torch.softmax(q @ k.transpose(1, 2) * q.shape[-1] ** -0.5, dim=-1) @ v
