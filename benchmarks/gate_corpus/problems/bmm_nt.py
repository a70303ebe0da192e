import torch

entry = "bmm_nt"
shapes = [{"batch": 2, "m": 20, "n": 36, "k": 24}, {"batch": 1, "m": 16, "n": 48, "k": 40}]


def get_inputs(batch=3, m=24, n=40, k=56):
    return [torch.randn(batch, m, k), torch.randn(batch, n, k), torch.randn(n), 0.25]


def reference(a, b, bias=None, alpha=1.0, out=None):
    result = alpha * (a @ b.transpose(1, 2))
    return result if bias is None else result + bias
