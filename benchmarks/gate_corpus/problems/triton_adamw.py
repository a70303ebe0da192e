import torch

entry = "adamw_step"
shapes = [{"n": 77}]


def get_inputs(n=3000):
    return [
        torch.randn(n, device="cuda"),
        torch.randn(n, device="cuda"),
        torch.randn(n, device="cuda") * 0.1,
        torch.rand(n, device="cuda"),
        1e-3,
    ]


def reference(p, g, m, v, lr):
    m.mul_(0.9).add_(g, alpha=0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    p.mul_(1 - lr * 0.01)
    p.sub_(lr * m / (v.sqrt() + 1e-8))
