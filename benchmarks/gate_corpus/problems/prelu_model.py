import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.slopes = nn.PReLU(channels)

    def forward(self, x):
        return self.slopes(x)


def get_inputs():
    return [torch.randn(40, 60)]


def get_init_inputs():
    return [60]
