"""Rotary embedding of queries (batch, seq, heads, dim) on the first rotary_dim dimensions, halves rotated; the rest passes through."""

import torch

entry = "rotary"
shapes = [{"batch": 1, "seq": 5, "heads": 3, "dim": 64}, {"batch": 2, "seq": 17, "heads": 2, "dim": 128}]


def get_inputs(batch=2, seq=32, heads=4, dim=64):
    q = torch.randn(batch, seq, heads, dim, device="cuda", dtype=torch.float32)
    half = dim // 2
    angle = torch.arange(seq, device="cuda")[:, None] / 10000 ** (torch.arange(half, device="cuda") / half)
    cos = torch.cos(angle).expand(batch, seq, half).contiguous()
    sin = torch.sin(angle).expand(batch, seq, half).contiguous()
    return [q, cos, sin]


def reference(q, cos, sin):
    half = cos.shape[-1]
    c, s = cos[:, :, None, :], sin[:, :, None, :]
    a, b, rest = q[..., :half], q[..., half : 2 * half], q[..., 2 * half :]
    return torch.cat((a * c - b * s, b * c + a * s, rest), dim=-1).to(q.dtype)
