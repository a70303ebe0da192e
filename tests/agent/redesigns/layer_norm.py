"""A layer norm that reads each row three times."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + c, mask=c < columns, other=0.0)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + c, mask=c < columns, other=0.0)
        squares += tl.where(c < columns, (x - mean) * (x - mean), 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + c, mask=c < columns, other=0.0)
        w = tl.load(w_ptr + c, mask=c < columns)
        b = tl.load(b_ptr + c, mask=c < columns)
        tl.store(y_ptr + row * columns + c, (x - mean) * scale * w + b, mask=c < columns)


def layer_norm(x, weight, bias):
    y = torch.empty_like(x)
    layer_norm_kernel[(x.shape[0],)](x, weight, bias, y, x.shape[1], 1e-5, BLOCK=128)
    return y


def get_inputs():
    return torch.randn(1024, 1024), torch.rand(1024), torch.randn(1024)


def reference(x, weight, bias):
    return torch.nn.functional.layer_norm(x, (x.shape[1],), weight, bias, 1e-5)
