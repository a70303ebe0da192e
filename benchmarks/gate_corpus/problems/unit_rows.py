import torch

entry = "unit_rows"
shapes = [{"rows": 5, "columns": 30}]


def get_inputs(rows=16, columns=96):
    return [torch.randn(rows, columns, device="cuda")]


def reference(x):
    return torch.nn.functional.normalize(x, dim=1)
