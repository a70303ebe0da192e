"""The up projection of a mixture of experts: tokens sorted by expert, counts[e] of them for expert e, each group times its weights."""

import torch

entry = "grouped_gemm"
shapes = [{"tokens": 50, "experts": 3, "hidden": 64, "width": 48}]


def get_inputs(tokens=256, experts=4, hidden=128, width=128):
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.float16)
    weights = torch.randn(experts, hidden, width, device="cuda", dtype=torch.float16) / hidden**0.5
    counts = torch.full((experts,), tokens // experts, dtype=torch.int32)
    counts[: tokens % experts] += 1
    if experts > 1 and tokens >= 4 * experts:
        counts[0] += 3
        counts[-1] -= 3
    return [x, weights, counts.to("cuda")]


def reference(x, weights, counts):
    wide = torch.promote_types(x.dtype, torch.float32)
    parts = torch.split(x.to(wide), counts.tolist())
    return torch.cat([part @ w.to(wide) for part, w in zip(parts, weights)]).to(x.dtype)
