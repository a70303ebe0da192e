import torch
import torch.nn as nn


class Model(nn.Module):
    """Squared distances of every query to every centre."""

    def forward(self, queries, centres):
        apart = queries.unsqueeze(1) - centres.unsqueeze(0)
        return torch.sum(apart**2, dim=2)


def get_inputs():
    return [torch.randn(48, 20), torch.randn(33, 20)]


def get_init_inputs():
    return []
