"""A wide matrix times a vector: one program for each row."""

import torch
import triton
import triton.language as tl


@triton.jit
def matvec_kernel(a_ptr, x_ptr, y_ptr, K, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([BLOCK_K], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        offsets = k + tl.arange(0, BLOCK_K)
        mask = offsets < K
        a = tl.load(a_ptr + row * K + offsets, mask=mask, other=0.0)
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
        acc += a * x
    tl.store(y_ptr + row, tl.sum(acc, axis=0))


def matvec(a, x):
    M, K = a.shape
    y = torch.empty(M, device=a.device, dtype=a.dtype)
    matvec_kernel[(M,)](a, x, y, K, BLOCK_K=256)
    return y


entry = "matvec"
shapes = [{"m": 8, "k": 1000}, {"m": 5, "k": 4096}]


def get_inputs(m=32, k=8192):
    return [torch.randn(m, k, device="cuda") / k**0.5, torch.randn(k, device="cuda")]


def reference(a, x):
    return a @ x
