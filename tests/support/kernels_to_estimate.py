"""Kernels whose costs differ in one way each. Full-size shapes lie on pages that nothing touches."""

import math

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    tl.store(
        out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside
    )  # the addition


@triton.jit
def polynomial(x, out, n, B: tl.constexpr, KIND: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + at, mask=at < n).to(KIND)
    total = value
    for _ in tl.static_range(64):
        total = total * value + value  # the arithmetic
    tl.store(out + at, total.to(tl.float32), mask=at < n)


@triton.jit
def count(x, out, n, B: tl.constexpr, SPREAD: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    where = out + (at if SPREAD else at * 0)
    tl.atomic_add(where, tl.load(x + at, mask=at < n), mask=at < n)  # the update


@triton.jit
def scale_rows(x, weight, out, columns, B: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, B)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside) * tl.load(weight + at, mask=inside)
    tl.store(out + row * columns + at, value, mask=inside)


@triton.jit
def noise(x, out, seed, B: tl.constexpr, RANDOM: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + at)
    if RANDOM:
        value += tl.rand(seed, at)  # the numbers
    tl.store(out + at, value)


@triton.jit
def hashed(x, out, rounds, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + at)
    for _ in range(rounds):
        value = (value ^ (value >> 15)) * 0x2C1B3C6D  # the rounds
    tl.store(out + at, value)


@triton.jit
def rotated(x, out, columns, B: tl.constexpr, ROWS: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    if ROWS:
        at = at // columns * columns + (at + 1) % columns  # the division
    tl.store(out + at, tl.load(x + at))


@triton.jit
def product(a, b, c, K, row_a, row_b, row_c, M: tl.constexpr, N: tl.constexpr, KB: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    n = tl.program_id(1) * N + tl.arange(0, N)
    k = tl.arange(0, KB)
    left, right = a + m[:, None] * row_a + k[None, :], b + k[:, None] * row_b + n[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for _ in range(0, K, KB):
        total = tl.dot(tl.load(left), tl.load(right), total)  # the product
        left += KB
        right += KB * row_b
    tl.store(c + m[:, None] * row_c + n[None, :], total.to(tl.float16))


def zeros(*shape, dtype=torch.float32):
    """A tensor of zeros whose pages the system hands out on first touch; aligned as a device's would be."""
    nbytes = math.prod(shape) * dtype.itemsize
    pages = np.zeros(nbytes + 512, np.uint8)
    start = -pages.ctypes.data % 512
    return torch.from_numpy(pages[start : start + nbytes]).view(dtype).view(shape)


def run_add(block, n=1 << 25, warps=4):
    add[(n // block,)](zeros(n), zeros(n), zeros(n), n, B=block, num_warps=warps)


def run_polynomial(kind, n=1 << 24):
    polynomial[(n // 1024,)](zeros(n), zeros(n), n, B=1024, KIND=kind)


def run_count(spread, n=1 << 22):
    count[(n // 1024,)](zeros(n), zeros(n), n, B=1024, SPREAD=spread)


def run_noise(random, n=1 << 26):
    noise[(n // 1024,)](zeros(n), zeros(n), 7, B=1024, RANDOM=random)


def run_hashed(rounds, n=1 << 24):
    like = {"dtype": torch.int32}
    hashed[(n // 1024,)](zeros(n, **like), zeros(n, **like), rounds, B=1024)


def run_rotated(rows, n=1 << 26):
    rotated[(n // 1024,)](zeros(n), zeros(n), 1000, B=1024, ROWS=rows)


def run_scale_rows(columns=4096, rows=8192):
    scale_rows[(rows,)](zeros(rows, columns), zeros(columns), zeros(rows, columns), columns, B=columns)


def run_product(m, n, k, *, stages=3, warps=8, size=4096, depth=512):
    a, b, c = (zeros(*shape, dtype=torch.float16) for shape in ((size, depth), (depth, size), (size, size)))
    product[(size // m, size // n)](
        a, b, c, depth, depth, size, size, M=m, N=n, KB=k, num_stages=stages, num_warps=warps
    )
