"""Layer norm that reads each row three times: for the mean, the variance, and the result."""

import torch
import triton
import triton.language as tl


@triton.jit
def ln_fwd(X, Y, W, B, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    X += row * stride
    Y += row * stride
    acc = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        acc += tl.load(X + cols, mask=cols < N, other=0.0)
    mean = tl.sum(acc, axis=0) / N
    acc2 = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        d = tl.load(X + cols, mask=cols < N, other=0.0) - mean
        acc2 += tl.where(cols < N, d * d, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(acc2, axis=0) / N + eps)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        x = tl.load(X + cols, mask=mask, other=0.0)
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        tl.store(Y + cols, (x - mean) * rstd * w + b, mask=mask)


def layer_norm(x, weight, bias, eps=1e-5):
    y = torch.empty_like(x)
    rows, n = x.shape
    ln_fwd[(rows,)](x, y, weight, bias, x.stride(0), n, eps, BLOCK_SIZE=256)
    return y


entry = "layer_norm"


def get_inputs(rows=4096, n=8192):
    return [torch.randn(rows, n, device="cuda"), torch.randn(n, device="cuda"), torch.randn(n, device="cuda")]


def reference(x, weight, bias, eps=1e-5):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


shapes = [{"rows": 3, "n": 1000}, {"rows": 17, "n": 64}]
