import torch

entry = "gated_scan"
shapes = [{"batch": 1, "length": 35, "channels": 48}, {"batch": 3, "length": 17, "channels": 7}]


def get_inputs(batch=2, length=48, channels=32):
    x = torch.randn(batch, length, channels)
    a = torch.sigmoid(torch.randn(batch, length, channels) + 2)
    return [x, a, torch.randn(batch, channels)]


def reference(x, a, h0):
    h, states = h0, []
    for t in range(x.shape[1]):
        h = a[:, t] * h + x[:, t]
        states.append(h)
    return torch.stack(states, dim=1), h
