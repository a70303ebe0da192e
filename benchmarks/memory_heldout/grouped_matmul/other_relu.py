"""A product with a transposed matrix, clipped at zero."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_relu(x, w, y, rows, outs, ins, TR: tl.constexpr, TO: tl.constexpr, TI: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    r = i * TR + tl.arange(0, TR)
    o = j * TO + tl.arange(0, TO)
    total = tl.zeros((TR, TO), dtype=tl.float32)
    for start in range(0, ins, TI):
        d = start + tl.arange(0, TI)
        left = tl.load(
            x + r[:, None] * ins + d[None, :], mask=(r[:, None] < rows) & (d[None, :] < ins), other=0.0
        )
        right = tl.load(
            w + d[:, None] * outs + o[None, :], mask=(d[:, None] < ins) & (o[None, :] < outs), other=0.0
        )
        total += tl.dot(left, right, input_precision="ieee")
    total = tl.maximum(total, 0.0)
    tl.store(y + r[:, None] * outs + o[None, :], total, mask=(r[:, None] < rows) & (o[None, :] < outs))


def linear(x, w):
    rows, ins = x.shape
    outs = w.shape[1]
    y = torch.empty((rows, outs), device=x.device, dtype=x.dtype)
    blocks = (triton.cdiv(rows, 16), triton.cdiv(outs, 64))
    linear_relu[blocks](x, w, y, rows, outs, ins, TR=16, TO=64, TI=32)
    return y


entry = "linear"
shapes = [{"m": 64, "n": 32, "k": 64}, {"m": 70, "n": 50, "k": 90}]


def get_inputs(m=128, n=128, k=256):
    return [torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")]


def reference(x, w):
    return torch.relu(x @ w)
