"""Softmax of attention scores (batch, heads, queries, keys) with a length for each sequence; a sequence of length 0 gives zeros."""

import torch

entry = "masked_softmax"
shapes = [
    {"batch": 2, "heads": 3, "queries": 5, "keys": 77},
    {"batch": 1, "heads": 2, "queries": 16, "keys": 256},
]


def get_inputs(batch=2, heads=4, queries=32, keys=512):
    scores = torch.randn(batch, heads, queries, keys, device="cuda")
    lengths = torch.randint(keys // 2, keys + 1, (batch,), device="cuda", dtype=torch.int32)
    return [scores, lengths, 1.0]


def reference(scores, lengths, scale):
    keys = torch.arange(scores.shape[-1], device=scores.device)
    outside = keys[None, :] >= lengths[:, None]
    masked = (scores * scale).masked_fill(outside[:, None, None, :], float("-inf"))
    return torch.softmax(masked, dim=-1).masked_fill(outside[:, None, None, :], 0.0)
