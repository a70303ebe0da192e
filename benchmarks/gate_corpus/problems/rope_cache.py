import torch

entry = "rope_cache"
shapes = [{"tokens": 3, "dim": 24}, {"tokens": 3, "heads": 4, "kv_heads": 2}]


def get_inputs(tokens=8, heads=2, kv_heads=1, dim=32):
    qkv = torch.randn(tokens, (heads + 2 * kv_heads) * dim)
    q, k, v = qkv.split([heads * dim, kv_heads * dim, kv_heads * dim], dim=1)
    q, k, v = q.unflatten(1, (heads, dim)), k.unflatten(1, (kv_heads, dim)), v.unflatten(1, (kv_heads, dim))
    angles = torch.arange(64)[:, None] * 10000 ** (-torch.arange(0, dim, 2) / dim)
    positions = torch.arange(tokens) + 5
    slots = torch.randperm(24)[:tokens]
    return [q, k, v, angles.cos(), angles.sin(), positions, slots, torch.randn(24, 2, kv_heads, dim), False]


def turn(x, cos, sin, interleaved):
    rotary = 2 * cos.shape[1]
    first, rest = x[..., :rotary], x[..., rotary:]
    c, s = cos[:, None, :], sin[:, None, :]
    if interleaved:
        a, b = first[..., 0::2], first[..., 1::2]
        made = torch.stack([a * c - b * s, b * c + a * s], dim=-1).flatten(-2)
    else:
        a, b = first.chunk(2, dim=-1)
        made = torch.cat([a * c - b * s, b * c + a * s], dim=-1)
    return torch.cat([made, rest], dim=-1)


def reference(q, k, v, cos, sin, positions, slots, cache, interleaved):
    cos, sin = cos[positions], sin[positions]
    cache = cache.clone()
    kept = slots >= 0
    cache[slots[kept], 0] = turn(k, cos, sin, interleaved)[kept]
    cache[slots[kept], 1] = v[kept]
    return turn(q, cos, sin, interleaved), cache
