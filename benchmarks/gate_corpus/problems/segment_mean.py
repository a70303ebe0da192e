import torch

entry = "segment_mean"
shapes = [{"segments": 5, "columns": 40}, {"segments": 9, "columns": 17}]


def get_inputs(segments=12, columns=64):
    lengths = torch.randint(1, 12, (segments,))
    offsets = torch.zeros(segments + 1, dtype=torch.int64)
    offsets[1:] = lengths.cumsum(0)
    return [torch.randn(int(offsets[-1]), columns), offsets]


def reference(x, offsets):
    bounds = offsets.tolist()
    rows = [x[a:b].sum(0) / max(b - a, 1) for a, b in zip(bounds[:-1], bounds[1:])]
    return torch.stack(rows)
