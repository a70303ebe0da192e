import torch

entry = "dct"


def get_inputs(rows=24, size=32):
    return [torch.randn(rows, size, device="cuda")]


def reference(x):
    n = x.shape[-1]
    k = torch.arange(n, device=x.device, dtype=torch.float64)
    basis = torch.cos(torch.pi / n * (k[None, :] + 0.5) * k[:, None]).to(x.dtype)
    return torch.relu(x @ basis.t())
