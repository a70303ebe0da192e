"""The cyclic shift of a Swin transformer: images (batch, height, width, channels) rolled by -shift along height and width."""

import torch

entry = "roll"
shapes = [{"batch": 1, "size": 7, "channels": 20}, {"batch": 2, "size": 12, "channels": 64}]


def get_inputs(batch=2, size=14, channels=96, shift=-3):
    return [torch.randn(batch, size, size, channels, device="cuda"), shift]


def reference(x, shift):
    return torch.roll(x, shifts=(shift, shift), dims=(1, 2))
