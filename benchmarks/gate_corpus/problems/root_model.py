import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.sqrt(x + 1e-3) * torch.log1p(x)


def get_inputs():
    return [torch.rand(16, 200)]


def get_init_inputs():
    return []
