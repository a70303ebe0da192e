"""SwiGLU: silu(gate) * up, with gate and up side by side in one tensor as a fused projection makes them."""

import torch

entry = "swiglu"
shapes = [{"tokens": 5, "width": 70}, {"tokens": 16, "width": 1000}]


def get_inputs(tokens=64, width=1408):
    return [torch.randn(tokens, 2 * width, device="cuda")]


def reference(x):
    gate, up = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up
