"""SiLU in large blocks, several for each program."""

import torch
import triton
import triton.language as tl

BLOCK = 1024
TILES = 4


@triton.jit
def silu_kernel(x_ptr, y_ptr, n, TILES: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK * TILES
    for tile in range(TILES):
        offsets = first + tile * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


def silu(x):
    y = torch.empty_like(x)
    n = x.numel()
    silu_kernel[(triton.cdiv(n, BLOCK * TILES),)](x, y, n, TILES=TILES, BLOCK=BLOCK, num_warps=8)
    return y


entry = "silu"
shapes = [{"n": 1000}, {"n": 4096}]


def get_inputs(n=100000):
    return [torch.randn(n, device="cuda")]


def reference(x):
    return torch.nn.functional.silu(x)
