import torch

entry = "matmul"
shapes = [{"m": 33, "n": 17, "k": 65}]


def get_inputs(m=64, n=48, k=256):
    return [torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")]


def reference(a, b):
    return a @ b
