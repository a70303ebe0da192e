import torch

entry = "group_norm"


def get_inputs(n=2, c=16, h=9, w=10):
    return [
        torch.randn(n, c, h, w, device="cuda"),
        torch.ones(c, device="cuda"),
        torch.zeros(c, device="cuda"),
    ]


def reference(x, weight, bias):
    return torch.nn.functional.group_norm(x, 4, weight, bias, 1e-5)
