import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def quantize_flat(x_ptr, s_ptr, o_ptr, total, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    s = tl.load(s_ptr + i // N, mask=inside, other=1.0)
    v = tl.load(x_ptr + i, mask=inside, other=0.0) / s
    v = tl.minimum(tl.maximum(v, -128.0), 127.0)
    q = (v + 12582912.0) - 12582912.0  # the sum has no bits left for a fraction: rounds to even
    tl.store(o_ptr + i, q.to(tl.int8), mask=inside)


def quantize(x, scale):
    x = x.contiguous()
    out = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    total = x.numel()
    if total:
        quantize_flat[(triton.cdiv(total, 2048),)](x, scale.contiguous(), out, total, x.shape[1], BLOCK=2048)
    return out
