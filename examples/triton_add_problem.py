"""What ``triton_add.add`` should compute, and on what."""

import torch


def get_inputs(count=1 << 22):
    return [torch.rand(count, device="cuda"), torch.rand(count, device="cuda")]


def reference(x, y):
    return x + y


shapes = [{"count": 1}, {"count": 98_432}]
