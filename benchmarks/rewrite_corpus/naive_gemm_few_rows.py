"""A product with few rows (256 x 4096 by 4096 x 4096, half precision), tiles of 32 x 32 x 32 in one column."""

import torch
import triton
import triton.language as tl


@triton.jit
def gemm_kernel(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    m = (pid // tiles_n) * BM + tl.arange(0, BM)
    n = (pid % tiles_n) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = A + m[:, None] * K + k[None, :]
    b_ptrs = B + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] + i < K), other=0.0)
        b = tl.load(b_ptrs, mask=(n[None, :] < N) & (k[:, None] + i < K), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK
        b_ptrs += BK
    tl.store(C + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


def run(a, b):
    M, K = a.shape
    N, _ = b.shape
    c = torch.empty((M, N), dtype=torch.float16, device=a.device)
    gemm_kernel[(triton.cdiv(M, 32) * triton.cdiv(N, 32),)](a, b, c, M, N, K, BM=32, BN=32, BK=32)
    return c


entry = "run"


def get_inputs(m=256, n=4096, k=4096):
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    return [a, torch.randn(n, k, device="cuda", dtype=torch.float16) / k**0.5]


def reference(a, b):
    return (a.float() @ b.float().T).half()


shapes = [{"m": 1, "n": 64, "k": 128}, {"m": 100, "n": 96, "k": 72}]
