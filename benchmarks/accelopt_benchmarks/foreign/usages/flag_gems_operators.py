"""Operators of flag-gems in place of torch's, at the sizes of a language model's layer; the argument names one."""

import sys

import flag_gems
import torch

OPTIONS = {"device": "cuda", "dtype": torch.bfloat16}
SHAPES = ((2048, 4096), (512, 8192))


def softmax():
    for rows, columns in SHAPES:
        x = torch.randn(rows, columns, **OPTIONS)
        flag_gems.softmax_backward(torch.randn_like(x), flag_gems.softmax(x, -1), -1, torch.bfloat16)
        flag_gems.softmax(x, 0)


def rms_norm():
    for rows, columns in SHAPES:
        x, weight = torch.randn(rows, columns, **OPTIONS), torch.randn(columns, **OPTIONS)
        flag_gems.rms_norm(x.requires_grad_(), (columns,), weight.requires_grad_()).sum().backward()


def layernorm():
    for rows, columns in SHAPES:
        x, weight, bias = torch.randn(rows, columns, **OPTIONS), *torch.randn(2, columns, **OPTIONS)
        _, mean, deviation = flag_gems.layer_norm(x, (columns,), weight, bias)
        g = torch.randn_like(x)
        flag_gems.layer_norm_backward(g, x, (columns,), mean, deviation, weight, bias, (True, True, True))


def cumsum():
    for rows, columns in SHAPES:
        flag_gems.cumsum(torch.randn(rows, columns, **OPTIONS), 1)


def mm():
    from flag_gems.ops.mm import mm as product  # flag_gems.mm takes another file's on some GPUs

    for m, n, k in ((2048, 4096, 4096), (512, 512, 2048)):
        product(torch.randn(m, k, **OPTIONS), torch.randn(k, n, **OPTIONS))


globals()[sys.argv[1]]()
