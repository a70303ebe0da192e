import torch

entry = "entropy"
shapes = [{"rows": 3, "classes": 77}]


def get_inputs(rows=8, classes=256):
    return [torch.randn(rows, classes, device="cuda")]


def reference(logits):
    p = torch.softmax(logits, dim=1)
    return -torch.special.xlogy(p, p).sum(dim=1)
