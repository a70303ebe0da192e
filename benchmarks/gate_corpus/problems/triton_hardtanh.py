import torch

entry = "clamp"


def get_inputs(n=5000):
    return [torch.randn(n, device="cuda")]


def reference(x):
    return torch.clamp(x, -6.0, 6.0)
