import torch
import triton
import triton.language as tl


@triton.jit
def _split(x):
    one = x.to(tl.bfloat16)
    rest = x - one.to(tl.float32)
    two = rest.to(tl.bfloat16)
    three = (rest - two.to(tl.float32)).to(tl.bfloat16)
    return one, two, three


@triton.jit
def _mm(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
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
        a0, a1, a2 = _split(a)
        b0, b1, b2 = _split(b)
        small = tl.dot(a0, b2) + tl.dot(a2, b0) + tl.dot(a1, b1)
        middle = tl.dot(a0, b1) + tl.dot(a1, b0)
        acc += tl.dot(a0, b0) + (middle + small)
    tl.store(c_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    _mm[(triton.cdiv(m, 16), triton.cdiv(n, 16))](a, b, c, m, n, k, M=16, N=16, K=32)
    return c
