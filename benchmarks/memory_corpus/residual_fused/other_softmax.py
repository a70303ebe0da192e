"""Softmax of scores to which PyTorch adds a bias first, with a factor for each column."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_softmax(scores, factors, probs, width, temperature, TILE: tl.constexpr):
    pid = tl.program_id(0)
    idx = tl.arange(0, TILE)
    valid = idx < width
    s = tl.load(scores + pid * width + idx, mask=valid, other=-1e30)
    e = tl.exp((s - tl.max(s, axis=0)) / temperature)
    f = tl.load(factors + idx, mask=valid)
    tl.store(probs + pid * width + idx, e / tl.sum(e, axis=0) * f, mask=valid)


def biased_softmax(scores, bias, factors, temperature=2.0):
    biased = scores + bias
    probs = torch.empty_like(scores)
    m, width = scores.shape
    scaled_softmax[(m,)](biased, factors, probs, width, temperature, TILE=triton.next_power_of_2(width))
    return probs


entry = "biased_softmax"
shapes = [{"rows": 3, "n": 1000}, {"rows": 17, "n": 64}]


def get_inputs(rows=64, n=1024):
    return [
        torch.randn(rows, n, device="cuda"),
        torch.randn(rows, n, device="cuda"),
        torch.randn(n, device="cuda"),
    ]


def reference(scores, bias, factors, temperature=2.0):
    return torch.softmax((scores + bias) / temperature, dim=1) * factors
