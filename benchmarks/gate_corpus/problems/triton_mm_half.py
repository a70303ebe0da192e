import torch

entry = "matmul"
shapes = [{"m": 33, "n": 17, "k": 65}]


def get_inputs(m=32, n=32, k=768):
    return [
        torch.randn(m, k, device="cuda", dtype=torch.float16),
        torch.randn(k, n, device="cuda", dtype=torch.float16),
    ]


def reference(a, b):
    return a @ b
