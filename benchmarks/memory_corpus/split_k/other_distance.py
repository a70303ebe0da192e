"""Squared distances of the rows to a point: one program for each row."""

import torch
import triton
import triton.language as tl


@triton.jit
def distance(points, centre, out, width, TILE: tl.constexpr):
    pid = tl.program_id(0)
    total = tl.zeros([TILE], dtype=tl.float32)
    for first in range(0, width, TILE):
        idx = first + tl.arange(0, TILE)
        valid = idx < width
        p = tl.load(points + pid * width + idx, mask=valid, other=0.0)
        c = tl.load(centre + idx, mask=valid, other=0.0)
        d = p - c
        total += d * d
    tl.store(out + pid, tl.sum(total, axis=0))


def distances(points, centre):
    count, width = points.shape
    out = torch.empty(count, device=points.device, dtype=points.dtype)
    distance[(count,)](points, centre, out, width, TILE=512)
    return out


entry = "distances"
shapes = [{"m": 8, "k": 1000}, {"m": 5, "k": 4096}]


def get_inputs(m=32, k=8192):
    return [torch.randn(m, k, device="cuda") / k**0.5, torch.randn(k, device="cuda")]


def reference(points, centre):
    return ((points - centre) ** 2).sum(dim=1)
