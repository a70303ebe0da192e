"""Kernels that the compiler tests compile. Their line numbers are looked up, not written down."""

import triton
import triton.language as tl


@triton.jit
def row_scale(values, factor):
    return values * factor


@triton.jit
def softmax(out, inp, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    row_start = inp + row * row_stride
    values = tl.load(row_start + offsets, mask=offsets < columns, other=-float("inf"))  # the load
    values = values - tl.max(values, 0)  # the maximum
    powers = tl.exp(values)  # the special function
    scaled = row_scale(powers, 1.0 / tl.sum(powers, 0))  # the sum
    tl.store(out + row * row_stride + offsets, scaled, mask=offsets < columns)  # the store


@triton.jit
def matmul(a, b, c, K, stride_a, stride_b, stride_c, M: tl.constexpr, N: tl.constexpr, KB: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, KB)
    left = a + rows[:, None] * stride_a + inner[None, :]
    right = b + inner[:, None] * stride_b + columns[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for _ in range(0, K, KB):  # the loop
        x = tl.load(left)  # the left load
        y = tl.load(right)  # the right load
        total = tl.dot(x, y, total)  # the product
        left += KB
        right += KB * stride_b
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16))


@triton.jit
def wrong_types(out, inp, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(inp + offsets)
    tl.store(out + offsets, tl.dot(values, values))  # not two matrices
