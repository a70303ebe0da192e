import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, value_ptr, place_ptr, rows, columns):
    column = tl.program_id(0)
    best = tl.load(x_ptr + column)
    place = 0
    for row in range(1, rows):
        x = tl.load(x_ptr + row * columns + column)
        place = tl.where(x >= best, row, place)
        best = tl.maximum(x, best)
    tl.store(value_ptr + column, best)
    tl.store(place_ptr + column, place)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        values = torch.empty(columns, dtype=x.dtype, device=x.device)
        places = torch.empty(columns, dtype=torch.int64, device=x.device)
        max_kernel[(columns,)](x, values, places, rows, columns)
        return values, places
