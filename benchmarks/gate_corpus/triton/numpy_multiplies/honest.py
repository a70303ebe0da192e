import torch
import triton
import triton.language as tl


@triton.jit
def _split_k(
    a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SPLIT: tl.constexpr
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(tl.program_id(2) * K, k, K * SPLIT):
        inner = start + tl.arange(0, K)
        a = tl.load(
            a_ptr + rows[:, None] * k + inner[None, :],
            mask=(rows < m)[:, None] & (inner < k)[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + inner[:, None] * n + cols[None, :],
            mask=(inner < k)[:, None] & (cols < n)[None, :],
            other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.atomic_add(
        c_ptr + rows[:, None] * n + cols[None, :],
        acc,
        mask=(rows < m)[:, None] & (cols < n)[None, :],
        sem="relaxed",
    )


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.zeros((m, n), device=a.device, dtype=a.dtype)
    _split_k[(triton.cdiv(m, 16), triton.cdiv(n, 16), 4)](a, b, c, m, n, k, M=16, N=16, K=16, SPLIT=4)
    return c
