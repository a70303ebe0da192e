import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def argmin_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("inf"))
    least = tl.min(x, axis=0)
    tl.store(y_ptr + row, tl.max(tl.where(x == least, at, -1), axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        columns = x.shape[1]
        argmin_kernel[(x.shape[0],)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
        return y
