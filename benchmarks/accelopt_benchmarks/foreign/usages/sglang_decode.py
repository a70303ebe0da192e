"""One decode step of sglang's attention over a paged cache, with as many and with fewer heads of keys than queries."""

import torch
from sglang.kernels.ops.attention.decode_attention import decode_attention_fwd


def step(requests, length, heads, shared, size=128, splits=8):
    options = {"device": "cuda", "dtype": torch.bfloat16}
    q = torch.randn(requests, heads, size, **options)
    k, v = (torch.randn(requests * length, shared, size, **options) for _ in range(2))
    begins = torch.arange(0, requests * length + 1, length, device="cuda", dtype=torch.int32)
    slots = torch.randperm(requests * length, device="cuda")
    partial = torch.empty(requests, heads, splits, size, device="cuda")
    sums = torch.empty(requests, heads, splits, device="cuda")
    used = torch.full((requests,), splits, device="cuda", dtype=torch.int32)
    decode_attention_fwd(
        q, k, v, torch.empty_like(q), begins, slots, partial, sums, used, splits, size**-0.5, 1.0, 1.0
    )


step(16, 1024, 32, 32)
step(16, 1024, 32, 8)
