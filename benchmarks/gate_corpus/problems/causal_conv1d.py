import torch

entry = "causal_conv1d"
shapes = [{"batch": 1, "channels": 1, "length": 130}, {"batch": 1, "channels": 3, "length": 37}]


def get_inputs(batch=2, channels=2, length=70, width=4):
    x = torch.randn(batch, channels, length)
    return [
        x,
        torch.randn(channels, width),
        torch.randn(channels),
        torch.randn(batch, channels, width - 1),
        "silu",
    ]


def reference(x, weight, bias, state, activation):
    full = torch.cat([state, x], dim=-1)
    y = torch.nn.functional.conv1d(full, weight[:, None, :], bias, groups=x.shape[1])
    if activation == "silu":
        y = torch.nn.functional.silu(y)
    return y, full[..., x.shape[-1] :].clone()
