"""Sums of runs of rows, as in a graph network's pooling: segment s has the rows from offsets[s] to offsets[s + 1]."""

import torch

entry = "segment_sum"
shapes = [{"segments": 5, "features": 20}, {"segments": 30, "features": 64}]


def get_inputs(segments=48, features=96, seed=5):
    lengths = torch.randint(1, 24, (segments,), generator=torch.Generator().manual_seed(seed))
    offsets = torch.zeros(segments + 1, dtype=torch.int64)
    offsets[1:] = lengths.cumsum(0)
    values = torch.randn(int(offsets[-1]), features, device="cuda")
    return [values, offsets.to("cuda")]


def reference(values, offsets):
    ends = torch.cat((values.new_zeros(1, values.shape[1]), values.cumsum(0)))
    if values.dtype == torch.float64:
        return ends[offsets[1:]] - ends[offsets[:-1]]
    return torch.stack([values[a:b].sum(0) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist())])
