"""The sum of a vector with one atomic addition for each element."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = idx < n
    v = tl.load(x_ptr + idx, mask=valid, other=0.0)
    tl.atomic_add(total_ptr + tl.zeros_like(idx), v, mask=valid)


def total(x):
    result = torch.zeros(1, device=x.device, dtype=torch.float32)
    n = x.numel()
    sum_kernel[(triton.cdiv(n, 512),)](x, result, n, BLOCK=512)
    return result


entry = "total"


def get_inputs(n=1 << 20):
    return [torch.randn(n, device="cuda")]


def reference(x):
    return x.sum().reshape(1)


shapes = [{"n": 513}, {"n": 20_000}]
