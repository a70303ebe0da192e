import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.linear = nn.Linear(features, hidden).half()

    def forward(self, x):
        return nn.functional.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(256, 512).half()]


def get_init_inputs():
    return [512, 1024]
