import torch

entry = "grid_sample2d"
shapes = [{"batch": 1, "channels": 2, "size": 7}, {"batch": 2, "channels": 1, "size": 16}]


def get_inputs(batch=2, channels=3, size=12):
    x = torch.randn(batch, channels, size, size + 2)
    grid = torch.rand(batch, size, size, 2) * 1.6 - 0.8
    return [x, grid, "zeros", False]


def reference(x, grid, padding, align_corners):
    return torch.nn.functional.grid_sample(
        x, grid, mode="bilinear", padding_mode=padding, align_corners=align_corners
    )
