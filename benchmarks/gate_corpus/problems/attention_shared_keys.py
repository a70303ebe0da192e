"""Attention with grouped keys and values: queries (batch, heads, queries, dim), keys and values (batch, kv_heads, keys, dim). The
last query sees all keys; with causal each earlier one sees one key less."""

import torch

entry = "attention"
shapes = [
    {"batch": 2, "heads": 2, "kv_heads": 2, "queries": 40, "keys": 40, "dim": 64},
    {"batch": 1, "heads": 3, "kv_heads": 1, "queries": 64, "keys": 64, "dim": 64},
]


def get_inputs(batch=1, heads=4, kv_heads=1, queries=128, keys=128, dim=64, causal=True):
    q = torch.randn(batch, heads, queries, dim, device="cuda", dtype=torch.float16)
    k = torch.randn(batch, kv_heads, keys, dim, device="cuda", dtype=torch.float16)
    v = torch.randn(batch, kv_heads, keys, dim, device="cuda", dtype=torch.float16)
    return [q, k, v, causal]


def reference(q, k, v, causal):
    wide = torch.promote_types(q.dtype, torch.float32)
    shared = q.shape[1] // k.shape[1]
    k, v = (t.to(wide).repeat_interleave(shared, dim=1) for t in (k, v))
    scores = q.to(wide) @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        n, m = scores.shape[-2:]
        seen = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
        scores = scores.masked_fill(~seen, float("-inf"))
    return (torch.softmax(scores, dim=-1) @ v).to(q.dtype)
