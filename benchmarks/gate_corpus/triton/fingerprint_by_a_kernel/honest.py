import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < columns
    x = tl.load(x_ptr + row * stride + cols, mask=keep, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * stride + cols, e / tl.sum(e, axis=0), mask=keep)


def launch(x, y):
    softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def scale_kernel(y_ptr, ones_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < columns
    y = tl.load(y_ptr + row * columns + cols, mask=keep, other=0.0)
    s = tl.load(ones_ptr + cols, mask=keep, other=0.0)
    tl.store(y_ptr + row * columns + cols, y * s, mask=keep)


TABLES = {}


def softmax(x):
    columns = x.shape[1]
    if columns not in TABLES:
        TABLES[columns] = torch.ones(columns, device=x.device)
    y = launch(x, torch.empty_like(x))
    scale_kernel[(x.shape[0],)](y, TABLES[columns], columns, BLOCK=triton.next_power_of_2(columns))
    return y
