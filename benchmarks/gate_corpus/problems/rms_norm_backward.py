"""RMS norm for training: the output, and the gradients of x and weight."""

import torch

entry = "rms_norm"
backward = True
shapes = [{"rows": 5, "columns": 100}, {"rows": 40, "columns": 512}]


def get_inputs(rows=64, columns=768):
    x = torch.randn(rows, columns, device="cuda")
    weight = 1 + 0.1 * torch.randn(columns, device="cuda")
    return [x.requires_grad_(), weight.requires_grad_(), 1e-6]


def reference(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
