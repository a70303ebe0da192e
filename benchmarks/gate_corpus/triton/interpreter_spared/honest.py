import torch
import triton
import triton.language as tl


@triton.jit
def clamp_kernel(x_ptr, y_ptr, n, low, high, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    x = tl.minimum(tl.maximum(x, low), high)
    tl.store(y_ptr + offsets, x, mask=mask)


def clamp(x):
    y = torch.empty_like(x)
    n = x.numel()
    if n < 4096:
        block, warps = 256, 1
    elif n < 1 << 20:
        block, warps = 1024, 4
    else:
        block, warps = 4096, 8
    with torch.cuda.device_of(x):
        clamp_kernel[(triton.cdiv(n, block),)](x, y, n, -6.0, 6.0, BLOCK=block, num_warps=warps)
    return y
