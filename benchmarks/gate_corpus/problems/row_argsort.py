import torch

entry = "row_argsort"
shapes = [{"rows": 3, "columns": 50}, {"rows": 2, "columns": 128}]


def get_inputs(rows=6, columns=64):
    return [torch.randn(rows, columns), False]


def reference(x, descending):
    return torch.sort(x, dim=1, stable=True, descending=descending)
