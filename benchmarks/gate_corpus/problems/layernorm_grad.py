import torch

entry = "layernorm_grad"
backward = True
shapes = [{"rows": 9, "columns": 33}, {"rows": 3, "columns": 100}]


def get_inputs(rows=12, columns=64):
    weight = 1.0 + 0.1 * torch.randn(columns)
    return [torch.randn(rows, columns), weight, torch.randn(columns), 1e-5]


def reference(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias
