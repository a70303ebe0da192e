import torch

entry = "linear_int8"
shapes = [{"m": 5, "k": 24, "n": 20}]


def get_inputs(m=16, k=64, n=32):
    return [
        torch.randn(m, k, device="cuda"),
        torch.randint(-127, 128, (n, k), device="cuda", dtype=torch.int8),
        torch.rand(n, device="cuda") + 0.5,
    ]


def reference(x, w, scale):
    return x @ (w.to(x.dtype) * scale.to(x.dtype)[:, None]).t()
