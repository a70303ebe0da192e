"""Softmax over wide rows: each result is small, and the stated tolerance is absolute."""

import torch

tolerance = {"relative": 1e-2, "absolute": 1e-2}


def get_inputs(rows=8, columns=1000):
    return [torch.randn(rows, columns, device="cuda")]


def reference(x):
    return torch.softmax(x, dim=1)
