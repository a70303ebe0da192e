"""Layer norm over the last dimension, as a transformer block calls it."""

import torch

entry = "layer_norm"
shapes = [{"tokens": 7, "hidden": 200}, {"tokens": 33, "hidden": 512}]


def get_inputs(tokens=256, hidden=1024):
    x = torch.randn(tokens, hidden, device="cuda") + 0.5
    weight = 1 + 0.1 * torch.randn(hidden, device="cuda")
    bias = 0.1 * torch.randn(hidden, device="cuda")
    return [x, weight, bias, 1e-5]


def reference(x, weight, bias, eps):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)
