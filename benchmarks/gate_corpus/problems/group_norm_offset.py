import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, groups: int, channels: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(4, 24, 20, 20) * 0.5 + 50.0]


def get_init_inputs():
    return [6, 24]
