"""The router of a mixture of experts: the k largest logits of each token (the lower index first among equals), softmax over those k."""

import torch

entry = "topk_gate"
shapes = [{"tokens": 9, "experts": 8, "k": 2}, {"tokens": 20, "experts": 60, "k": 4}]


def get_inputs(tokens=64, experts=64, k=4):
    return [torch.randn(tokens, experts, device="cuda"), k]


def reference(logits, k):
    values, indices = torch.sort(logits, dim=-1, descending=True, stable=True)
    return torch.softmax(values[:, :k], dim=-1), indices[:, :k].to(torch.int32)
