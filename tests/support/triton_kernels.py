"""Small kernels, each for one thing that the interpreter must do right."""

import torch
import triton
import triton.language as tl
from triton.language import arange, load, program_id
from triton.language import store as put
from triton.language.extra import libdevice

WIDTH = tl.constexpr(64)


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def convert(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def scaled_rms(x, out, n, eps, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / n + eps.to(tl.float32))
    tl.store(out + at, (v * scale).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def device_functions(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + at, mask=at < n)
    tl.store(out + at, libdevice.tanh(v) + tl.math.erf(v) + libdevice.pow(v * v, 0.5), mask=at < n)


@triton.jit
def product(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * N + n[None, :])
    acc = tl.dot(left, right, out_dtype=tl.float32)
    tl.store(out + m[:, None] * N + n[None, :], acc.to(out.dtype.element_ty))


@triton.jit
def square(v):
    return v * v


@triton.jit
def twice_squared(v):
    w = square(v)
    return w + w


@triton.jit
def nested(x, out):
    at = tl.arange(0, WIDTH)
    tl.store(out + at, twice_squared(tl.load(x + at)))


@triton.jit
def imported_names(x, out, B: tl.constexpr):
    at = program_id(0) * B + arange(0, B)
    put(out + at, load(x + at) * 2)


@triton.jit
def larger_magnitude(a, b):
    return tl.where(tl.abs(a) > tl.abs(b), a, b)


@triton.jit
def reductions(x, best, where, odd, running, backwards, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + at)
    value, index = tl.max(v, axis=0, return_indices=True)
    tl.store(best, value)
    tl.store(where, index)
    tl.store(odd, tl.reduce(v, 0, larger_magnitude))
    tl.store(running + at, tl.cumsum(v, axis=0))
    tl.store(backwards + at, tl.associative_scan(v, 0, larger_magnitude, reverse=True))


@triton.jit
def accumulate(x, total, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(total, tl.sum(tl.load(x + at).to(tl.float32), axis=0).to(total.dtype.element_ty))


@triton.jit
def block_pointers(x, out, M, N, TM: tl.constexpr, TN: tl.constexpr):
    source = tl.make_block_ptr(x, (M, N), (N, 1), (tl.program_id(0) * TM, 0), (TM, TN), (1, 0))
    target = tl.make_block_ptr(out, (M, N), (N, 1), (tl.program_id(0) * TM, 0), (TM, TN), (1, 0))
    for _ in range(0, N, TN):
        tl.store(target, tl.load(source, boundary_check=(0, 1)) + 1, boundary_check=(0, 1))
        source = tl.advance(source, (0, TN))
        target = tl.advance(target, (0, TN))


@triton.jit
def descriptors(x, out, M, N, TM: tl.constexpr, TN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [TM, TN])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [TM, TN])
    row = tl.program_id(0) * TM
    target.store([row, 0], source.load([row, 0]) * 2)


@triton.jit
def flags(x, out, n, HAS_BIAS: tl.constexpr, negate, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0.0)
    for step in tl.static_range(3):
        v += step
    if HAS_BIAS:
        v += 10
    if negate:
        v = -v
    tl.store(out + at, v, mask=at < n)


@triton.jit
def assembly(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [tl.load(x + at)], dtype=tl.int32, is_pure=True, pack=1
    )
    tl.store(out + at, v)


@triton.jit
def reads_past_end(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at + 5)
    tl.store(out + at, v, mask=at < n)


@triton.jit
def writes_before_start(out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at - 3, at)


@triton.jit
def copy_columns(x, out, rows, columns, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * rows + at, tl.load(x + at * columns + tl.program_id(0)), mask=at < rows)


@triton.jit
def raises(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.static_assert(B < 4, "B is too large")
    tl.store(out + at, tl.load(x + at))


@triton.autotune([triton.Config({"B": b}, num_warps=w) for b, w in ((128, 4), (256, 8), (512, 4))], key=["n"])
@triton.jit
def tuned(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.heuristics({"B": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def guessed(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def closed_over(factor):
    width = tl.constexpr(32)

    @triton.jit
    def kernel(x, out):
        at = tl.arange(0, width)
        tl.store(out + at, tl.load(x + at) * factor)

    factor = tl.constexpr(factor)
    return kernel


def poisoned(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="cuda")


@triton.jit
def integer_product(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(left, right, out_dtype=tl.int32))


@triton.jit
def logic(x, out, m, n, LIMIT: tl.constexpr, B: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    inside = rows < m and columns < n
    v = tl.load(x + rows * n + columns, mask=inside, other=0.0)
    if (LIMIT is not None and m > 1) or n < 0:
        v = tl.where((not (v < LIMIT) and v > 0) or rows == 0, v, -1.0)
    tl.store(out + rows * n + columns, v, mask=inside and (LIMIT or True))


@triton.jit
def hinted(out, n, k, EQUAL: tl.constexpr, B: tl.constexpr):
    start = tl.multiple_of(tl.program_id(0) * n, 16)
    at = tl.arange(0, B)
    keep = tl.max_constancy(at < k, EQUAL)
    tl.assume(n > 15)
    tl.store(out + start + at, at, mask=keep)


@triton.jit
def members(x, out, n: tl.constexpr):
    value = tl.load(x + tl.arange(0, n))
    tl.store(out, value.sum())
    tl.store(out + 1, value.max(axis=0))
    tl.store(out + 2, tl.where((value > 0).to(tl.int32).sum() > 1, 1.0, 0.0))
