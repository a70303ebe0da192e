import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, rows, n, BLOCK: tl.constexpr, EACH: tl.constexpr):
    for step in tl.static_range(EACH):
        row = tl.program_id(0) * EACH + step
        if row < rows:
            total = 0.0
            for start in range(0, n, BLOCK):
                cols = start + tl.arange(0, BLOCK)
                total += tl.sum(
                    tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0).to(tl.float32), axis=0
                )
            tl.store(y_ptr + row, total)


def row_sum(x):
    y = torch.zeros(x.shape[0], dtype=torch.float32, device=x.device)
    row_sum_kernel[(triton.cdiv(x.shape[0], 4),)](x, y, x.shape[0], x.shape[1], BLOCK=256, EACH=4)
    return y
