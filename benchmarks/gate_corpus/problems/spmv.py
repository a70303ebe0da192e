import torch

entry = "spmv"
shapes = [{"rows": 7, "size": 90}, {"rows": 20, "size": 48}]


def get_inputs(rows=24, size=64):
    lengths = torch.randint(0, 40, (rows,))
    starts = torch.zeros(rows + 1, dtype=torch.int64)
    starts[1:] = lengths.cumsum(0)
    columns = torch.cat([torch.randperm(size)[:n].sort().values for n in lengths.tolist()])
    return [torch.randn(int(starts[-1])), columns, starts, torch.randn(size), 0.5]


def reference(values, columns, starts, x, alpha=1.0):
    bounds = starts.tolist()
    return alpha * torch.stack(
        [(values[a:b] * x[columns[a:b]]).sum() for a, b in zip(bounds[:-1], bounds[1:])]
    )
