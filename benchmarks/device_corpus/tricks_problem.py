import torch


def get_inputs(count=1 << 26):
    return [torch.randn(count, device="cuda")]


def reference(x):
    return 2 * x
