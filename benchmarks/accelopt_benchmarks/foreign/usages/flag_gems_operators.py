"""Operators of flag-gems in place of torch's, at the sizes of a language model's layer; forward and backward."""

import flag_gems
import torch


def main():
    options = {"device": "cuda", "dtype": torch.bfloat16}
    for rows, columns in ((2048, 4096), (512, 8192)):
        x = torch.randn(rows, columns, **options)
        weight, bias, g = (
            torch.randn(columns, **options),
            torch.randn(columns, **options),
            torch.randn_like(x),
        )
        y = flag_gems.softmax(x, -1)
        flag_gems.softmax_backward(g, y, -1, torch.bfloat16)
        flag_gems.softmax(x, 0)
        flag_gems.rms_norm(x.clone().requires_grad_(), (columns,), weight.clone().requires_grad_()).backward(
            g
        )
        _, mean, rstd = flag_gems.layer_norm(x, (columns,), weight, bias)
        flag_gems.layer_norm_backward(g, x, (columns,), mean, rstd, weight, bias, (True, True, True))
        flag_gems.cumsum(x, 1)
    for m, n, k in ((2048, 4096, 4096), (512, 512, 2048)):
        flag_gems.mm(torch.randn(m, k, **options), torch.randn(k, n, **options))


main()
