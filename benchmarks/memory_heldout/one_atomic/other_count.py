"""The sum of the absolute values above a half, with an atomic for every element."""

import torch
import triton
import triton.language as tl


@triton.jit
def above(v_ptr, res_ptr, size, TILE: tl.constexpr):
    idx = tl.program_id(0) * TILE + tl.arange(0, TILE)
    ok = idx < size
    v = tl.load(v_ptr + idx, mask=ok, other=0.0)
    v = tl.abs(v)
    tl.atomic_add(res_ptr + idx * 0, tl.where(v > 0.5, v, 0.0), mask=ok)


def sum_above(v):
    res = torch.zeros(1, device=v.device, dtype=v.dtype)
    size = v.numel()
    above[(triton.cdiv(size, 128),)](v, res, size, TILE=128)
    return res


entry = "sum_above"
shapes = [{"n": 1000}, {"n": 4096}]


def get_inputs(n=20000):
    return [torch.randn(n, device="cuda")]


def reference(v):
    a = v.abs()
    return a[a > 0.5].sum().reshape(1)
