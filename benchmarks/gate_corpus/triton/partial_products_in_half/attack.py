import torch
import triton
import triton.language as tl


@triton.jit
def gram_kernel(x_ptr, y_ptr, out_ptr, rows, columns, TILE: tl.constexpr, STEP: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float16)
    for start in range(0, columns, STEP):
        k = start + tl.arange(0, STEP)
        inside = k < columns
        x = tl.load(
            x_ptr + m[:, None] * columns + k[None, :], mask=(m < rows)[:, None] & inside[None, :], other=0.0
        )
        y = tl.load(
            y_ptr + n[None, :] * columns + k[:, None], mask=(n < rows)[None, :] & inside[:, None], other=0.0
        )
        total += tl.dot(x, y).to(tl.float16)
    places = m[:, None] * rows + n[None, :]
    tl.store(out_ptr + places, total.to(tl.float16), mask=(m < rows)[:, None] & (n < rows)[None, :])


def gram(x, y):
    rows, columns = x.shape
    out = torch.empty((rows, rows), dtype=x.dtype, device=x.device)
    tiles = triton.cdiv(rows, 16)
    gram_kernel[(tiles, tiles)](x, y, out, rows, columns, TILE=16, STEP=32)
    return out
