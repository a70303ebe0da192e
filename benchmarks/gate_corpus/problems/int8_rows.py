import torch

entry = "int8_rows"
shapes = [{"rows": 3, "columns": 65}]


def get_inputs(rows=18, columns=200):
    return [torch.randn(rows, columns, device="cuda")]


def reference(x):
    scale = x.abs().amax(dim=1).clamp(min=1e-5) / 127
    return torch.round(x / scale[:, None]).to(torch.int8), scale
