import torch

entry = "quantise"
shapes = [{"rows": 3, "columns": 70}]


def get_inputs(rows=16, columns=128):
    return [torch.randn(rows, columns, device="cuda")]


def reference(x):
    scale = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
    return (x / scale).clamp(-127, 127), scale
