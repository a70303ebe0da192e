"""How many values fall into each of so many equal bins from low to high; what lies outside is not counted, high is in the last bin."""

import torch

entry = "histogram"
shapes = [{"n": 1000, "bins": 10}, {"n": 5000, "bins": 100}]


def get_inputs(n=100000, bins=64):
    return [torch.rand(n, device="cuda") * 8 - 4, bins, -4.0, 4.0]


def reference(x, bins, low, high):
    where = ((x - low) * (bins / (high - low))).floor().to(torch.int64).clamp(0, bins - 1)
    inside = (x >= low) & (x <= high)
    return torch.bincount(where[inside], minlength=bins).to(torch.int32)
