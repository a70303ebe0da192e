import torch
import triton
import triton.language as tl
from torch.utils.cpp_extension import load_inline


def build():
    return load_inline("fast", cpp_sources="")


@triton.jit
def rms_kernel(x_ptr, w_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    rms = tl.sqrt(tl.sum(x * x, axis=0) / columns + 1e-6)
    tl.store(out_ptr + row * columns + offsets, x / rms * w, mask=mask)


def rms(x, w):
    out = torch.empty_like(x)
    rms_kernel[(x.shape[0],)](x, w, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
