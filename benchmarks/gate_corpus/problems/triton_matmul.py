"""A product of two matrices."""

import torch

shapes = [{"m": 33, "k": 48, "n": 17}]


def get_inputs(m=64, k=64, n=32):
    return [torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")]


def reference(a, b):
    return a @ b
