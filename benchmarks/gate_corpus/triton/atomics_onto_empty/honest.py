import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, out_ptr, rows, columns, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * COLS + tl.arange(0, COLS)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    x = tl.load(x_ptr + r[:, None] * stride + c[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + c, tl.sum(x, axis=0), mask=c < columns, sem="relaxed")


_accumulators: dict = {}


def column_sum(x):
    rows, columns = x.shape
    key = (columns, x.device)
    out = _accumulators.get(key)
    if out is None:
        out = _accumulators[key] = torch.empty(columns, device=x.device, dtype=torch.float32)
    out.zero_()
    add_kernel[(triton.cdiv(rows, 32), triton.cdiv(columns, 64))](
        x, out, rows, columns, x.stride(0), ROWS=32, COLS=64
    )
    return out.clone()
