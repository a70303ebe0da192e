"""Dropout with a seed, as in Triton's tutorial: the random numbers are Triton's Philox at the element's offset. No reference: the
results are those of the kernel file itself."""

import torch

entry = "dropout"
shapes = [{"n": 1000}, {"n": 4097}]


def get_inputs(n=50000, seed=123):
    return [torch.randn(n, device="cuda"), 0.25, seed]
