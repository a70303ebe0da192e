import torch

entry = "swa"
shapes = [{"heads": 2, "kv_heads": 2, "length": 40}, {"heads": 3, "kv_heads": 1, "length": 33}]


def get_inputs(heads=4, kv_heads=1, length=64, dim=32, window=20):
    q = torch.randn(heads, length, dim)
    return [q, torch.randn(kv_heads, length, dim), torch.randn(kv_heads, length, dim), window, dim**-0.5]


def reference(q, k, v, window, scale):
    group = q.shape[0] // k.shape[0]
    lq, lk = q.shape[1], k.shape[1]
    k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
    scores = q @ k.transpose(1, 2) * scale
    i = torch.arange(lq)[:, None] + lk - lq
    j = torch.arange(lk)[None, :]
    scores = scores.masked_fill(~((j <= i) & (j > i - window)), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
