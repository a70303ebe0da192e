"""relu(x @ w + b)."""

import torch

shapes = [{"m": 20, "k": 40, "n": 24}]


def get_inputs(m=48, k=96, n=32):
    return [
        torch.randn(m, k, device="cuda"),
        torch.randn(k, n, device="cuda"),
        torch.randn(n, device="cuda"),
    ]


def reference(x, w, b):
    return torch.relu(x @ w + b)
