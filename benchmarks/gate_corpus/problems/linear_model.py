import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer and a leaky ReLU."""

    def __init__(self, wide, out):
        super().__init__()
        self.linear = nn.Linear(wide, out)

    def forward(self, x):
        return torch.nn.functional.leaky_relu(self.linear(x), 0.1)


rows, wide, out = 24, 40, 32


def get_inputs():
    return [torch.randn(rows, wide)]


def get_init_inputs():
    return [wide, out]
