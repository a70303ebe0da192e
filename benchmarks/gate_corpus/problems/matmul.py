import torch

entry = "matmul"
shapes = [{"m": 17, "k": 40, "n": 33}]


def get_inputs(m=32, k=64, n=48):
    return [torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")]


def reference(a, b):
    return a @ b
