"""Kernels with their launches, which the cases of the Triton rules are about."""

IMPORTS = """import torch
import triton
import triton.language as tl

other = 1  # ü
"""

ADD = """

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # one block
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + 1, mask=inside)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256, num_warps=4)
    return out
"""

MATMUL = """

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, N, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    n = tl.program_id(1)
    rows = m * BLOCK + tl.arange(0, BLOCK)
    columns = n * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * N + columns[None, :])
        acc += tl.dot(a, b)  # the product
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)


def run(x):
    a, b = x[:64, :64].contiguous(), x[:64, :64].T.contiguous()
    c = torch.empty_like(a)
    kernel[(2, 2)](a, b, c, 64, 64, BLOCK=32)
    return c
"""

SOFTMAX = """

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    largest = -float("inf")
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + offsets, mask=offsets < n, other=-float("inf"))
        largest = tl.maximum(largest, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + offsets, mask=offsets < n, other=-float("inf"))
        total += tl.sum(tl.exp(x - largest), axis=0)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + offsets, mask=offsets < n)
        tl.store(out_ptr + row + offsets, tl.exp(x - largest) / total, mask=offsets < n)


def run(x):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=32)
    return out
"""

SCALE = """

@triton.jit
def kernel(x_ptr, s_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + offsets, mask=offsets < n)
        y = tl.exp(x * scale)
        tl.store(out_ptr + row * n + offsets, y, mask=offsets < n)


def run(x):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, x, out, x.shape[1], 0.5, BLOCK=64)
    return out
"""

REDUCE = """

@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        first = row * 1
        w = tl.load(w_ptr + first)
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0)
        total += x * w
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def run(x):
    out = torch.empty(x.shape[0])
    kernel[(x.shape[0],)](x, x, out, x.shape[1], BLOCK=64)
    return out
"""

#: REDUCE with a store in its loop.
STORING = REDUCE.replace("total += x * w", "tl.store(out_ptr + row, start)\n        total += x * w")

BLOCK_POINTER = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    x = tl.make_block_ptr(x_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    out = tl.make_block_ptr(out_ptr, (n,), (1,), (start,), block_shape=(BLOCK,), order=(0,))
    tl.store(out, tl.load(x, boundary_check=(0,)) * 2, boundary_check=(0,))


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256, num_warps=4)
    return out
"""

STRIDED = ADD.replace(
    "tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
    "tl.program_id(0) + tl.arange(0, BLOCK) * tl.num_programs(0)",
)

TUNED = (
    ADD.replace(
        "@triton.jit",
        '@triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=4)], key=["n"])\n@triton.jit',
    )
    .replace(", BLOCK=256, num_warps=4", "")
    .replace("(triton.cdiv(n, 256),)", 'lambda meta: (triton.cdiv(n, meta["BLOCK"]),)')
)
