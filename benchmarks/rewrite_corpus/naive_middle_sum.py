"""KernelBench level 1, problem 47 (sum over the middle dimension), as it is first written: narrow columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_dim1_kernel(x_ptr, out_ptr, D1, D2, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D2
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    base = x_ptr + batch.to(tl.int64) * D1 * D2
    for i in range(D1):
        acc += tl.load(base + i * D2 + cols, mask=mask, other=0.0)
    tl.store(out_ptr + batch * D2 + cols, acc, mask=mask)


def sum_middle(x):
    B, D1, D2 = x.shape
    out = torch.empty((B, 1, D2), device=x.device, dtype=x.dtype)
    sum_dim1_kernel[(B, triton.cdiv(D2, 64))](x, out, D1, D2, BLOCK=64)
    return out


entry = "sum_middle"


def get_inputs(batch=128, d1=4096, d2=4095):
    return [torch.rand(batch, d1, d2, device="cuda")]


def reference(x):
    return torch.sum(x, dim=1, keepdim=True)


shapes = [{"batch": 2, "d1": 7, "d2": 65}, {"batch": 1, "d1": 100, "d2": 300}]
