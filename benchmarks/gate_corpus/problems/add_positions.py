import torch

entry = "add_positions"


def get_inputs(tokens=24, dim=32):
    return [
        torch.randn(tokens, dim, device="cuda"),
        torch.randn(64, dim, device="cuda"),
        torch.arange(tokens, device="cuda"),
    ]


def reference(x, table, positions):
    return x + table[positions % 64]
