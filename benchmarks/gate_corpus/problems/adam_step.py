import torch

entry = "adam_step"
shapes = [{"m": 3, "n": 33}, {"m": 1, "n": 5}]


def get_inputs(m=9, n=70):
    return [
        torch.randn(m, n),
        torch.randn(m, n),
        torch.randn(m, n) * 0.1,
        torch.rand(m, n) * 0.1 + 0.01,
        10,
        1e-3,
        0.9,
        0.999,
        1e-8,
        0.01,
        True,
        1.0,
    ]


def reference(p, g, m, v, step, lr, beta1, beta2, eps, decay, decoupled, scale):
    g = g / scale
    if decoupled:
        p = p * (1 - lr * decay)
    else:
        g = g + decay * p
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    return p - lr * (m / (1 - beta1**step)) / (torch.sqrt(v / (1 - beta2**step)) + eps), m, v
