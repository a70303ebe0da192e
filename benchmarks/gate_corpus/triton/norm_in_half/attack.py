import torch
import triton
import triton.language as tl


@triton.jit
def unit_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=keep, other=0.0)
    norm = tl.sqrt(tl.sum(x * x, axis=0).to(tl.float16).to(tl.float32))
    tl.store(y_ptr + row * columns + at, (x.to(tl.float32) / (norm + 1e-6)).to(tl.float16), mask=keep)


def unit_rows(x):
    y = torch.empty_like(x)
    rows, columns = x.shape
    unit_kernel[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
    return y
