import torch


def get_inputs(rows=8192, columns=4096):
    x = torch.randn(rows, columns, device="cuda", dtype=torch.float16)
    return [x, torch.randn(columns, device="cuda").half(), torch.randn(columns, device="cuda").half()]


def reference(x, weight, bias):
    return torch.nn.functional.layer_norm(x, (x.shape[1],), weight, bias, 1e-5)
