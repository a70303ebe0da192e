"""A wide matrix times a vector: several programs share a row."""

import torch
import triton
import triton.language as tl


@triton.jit
def matvec_kernel(a_ptr, x_ptr, y_ptr, K, SPLIT: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    acc = tl.zeros([BLOCK_K], dtype=tl.float32)
    for k in range(part * BLOCK_K, K, SPLIT * BLOCK_K):
        offsets = k + tl.arange(0, BLOCK_K)
        mask = offsets < K
        a = tl.load(a_ptr + row * K + offsets, mask=mask, other=0.0)
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
        acc += a * x
    tl.atomic_add(y_ptr + row, tl.sum(acc, axis=0))


SPLIT = 8


def matvec(a, x):
    M, K = a.shape
    y = torch.zeros(M, device=a.device, dtype=a.dtype)
    matvec_kernel[(M, SPLIT)](a, x, y, K, SPLIT=SPLIT, BLOCK_K=256)
    return y


entry = "matvec"
shapes = [{"m": 8, "k": 1000}, {"m": 5, "k": 4096}]


def get_inputs(m=32, k=8192):
    return [torch.randn(m, k, device="cuda") / k**0.5, torch.randn(k, device="cuda")]


def reference(a, x):
    return a @ x
