import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def variance_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=keep, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    variance = tl.sum(x * x, axis=0) / columns - mean * mean
    tl.store(y_ptr + row, variance)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
        columns = x.shape[1]
        variance_kernel[(x.shape[0],)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
        return y
