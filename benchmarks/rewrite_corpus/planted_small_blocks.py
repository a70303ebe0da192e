"""The product of two vectors, element by element, in blocks of 32."""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def multiply_kernel(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(c + i, tl.load(a + i, mask=m) * tl.load(b + i, mask=m), mask=m)


def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = torch.empty_like(a)
    n = a.numel()
    blocks = (n + BLOCK - 1) // BLOCK
    multiply_kernel[(blocks,)](a, b, c, n, BLOCK=BLOCK)
    return c


entry = "multiply"


def get_inputs(n=1 << 24):
    return [torch.randn(n, device="cuda"), torch.randn(n, device="cuda")]


def reference(a, b):
    return a * b


shapes = [{"n": 31}, {"n": 100_000}]
