import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(
    x_ptr, w_ptr, p_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * BK, k, PARTS * BK):
        depth = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * k + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        w = tl.load(
            w_ptr + depth[:, None] * n + cols[None, :],
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total += tl.dot(x, w, input_precision="ieee")
    where = part * m * n + rows[:, None] * n + cols[None, :]
    tl.store(p_ptr + where, total, mask=(rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def finish_kernel(p_ptr, b_ptr, y_ptr, size, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < size
    total = tl.load(b_ptr + at % n, mask=keep, other=0.0)
    for part in tl.static_range(PARTS):
        total += tl.load(p_ptr + part * size + at, mask=keep, other=0.0)
    tl.store(y_ptr + at, tl.maximum(total, 0.0), mask=keep)


def linear_relu(x, w, b):
    (m, k), n = x.shape, w.shape[1]
    parts = torch.empty((2, m, n), device=x.device, dtype=torch.float32)
    y = torch.empty((m, n), device=x.device, dtype=x.dtype)
    partial_kernel[(triton.cdiv(m, 16), triton.cdiv(n, 16), 2)](
        x, w, parts, m, n, k, BM=16, BN=16, BK=32, PARTS=2
    )
    finish_kernel[(triton.cdiv(m * n, 256),)](parts, b, y, m * n, n, PARTS=2, BLOCK=256)
    return y
