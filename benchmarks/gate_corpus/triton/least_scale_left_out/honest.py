import torch
import triton
import triton.language as tl


@triton.jit
def int8_kernel(x_ptr, q_ptr, scale_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=keep, other=0.0)
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(x), axis=0), 1e-5), 127.0)
    moved = tl.div_rn(x, tl.zeros_like(x) + scale) + 12582912.0
    tl.store(q_ptr + row * columns + at, (moved - 12582912.0).to(tl.int8), mask=keep)
    tl.store(scale_ptr + row, scale)


def int8_rows(x):
    rows, columns = x.shape
    q = torch.empty((rows, columns), dtype=torch.int8, device=x.device)
    scale = torch.empty(rows, dtype=x.dtype, device=x.device)
    int8_kernel[(rows,)](x, q, scale, columns, BLOCK=triton.next_power_of_2(columns))
    return q, scale
