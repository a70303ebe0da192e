import torch

entry = "rope_append"
shapes = [{"batch": 2, "heads": 3, "dim": 48}, {"batch": 1, "heads": 4, "dim": 64}]


def get_inputs(batch=3, heads=2, dim=32, capacity=24, tokens=1):
    start = torch.randint(0, capacity, (batch,))
    cache = torch.randn(batch, capacity, heads, dim)
    for b, first in enumerate(start.tolist()):
        cache[b, first:] = 0.0
    theta = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    angles = torch.arange(capacity, dtype=torch.float32)[:, None] * theta[None, :]
    return [cache, torch.randn(batch, tokens, heads, dim), angles.cos(), angles.sin(), start]


def reference(cache, new, cos, sin, start):
    result = cache.clone()
    half = new.shape[-1] // 2
    for b, first in enumerate(start.tolist()):
        for t in range(new.shape[1]):
            slot = first + t
            if 0 <= slot < cache.shape[1]:
                x, y = new[b, t, :, :half], new[b, t, :, half:]
                result[b, slot, :, :half] = x * cos[slot] - y * sin[slot]
                result[b, slot, :, half:] = y * cos[slot] + x * sin[slot]
    return result
