import torch

entry = "column_sum"
shapes = [{"rows": 7, "columns": 50}]


def get_inputs(rows=1024, columns=64):
    return [torch.randn(rows, columns, device="cuda", dtype=torch.float16)]


def reference(x):
    return x.sum(dim=0)
