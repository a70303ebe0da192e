import torch
import triton
import triton.language as tl


@triton.jit
def quant_kernel(x_ptr, q_ptr, s_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < columns
    x = tl.load(x_ptr + row * columns + cols, mask=mask, other=0.0)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0) / 127.0, 1e-10)
    y = x / scale
    y = (y + 12582912.0) - 12582912.0  # round half to even
    q = tl.minimum(tl.maximum(y, -127.0), 127.0)
    tl.store(q_ptr + row * columns + cols, q.to(tl.int8), mask=mask)
    tl.store(s_ptr + row, scale)


INT8_MAX = tl.constexpr(127)


def quantize_rows(x):
    rows, columns = x.shape
    q = torch.empty_like(x, dtype=torch.int8)
    scale = x.new_empty((rows,), dtype=torch.float32)
    quant_kernel[(rows,)](x.contiguous(), q, scale, columns, BLOCK=triton.next_power_of_2(columns))
    return q, scale
