# ruff: noqa: PT018 - written as a user would
"""Matrix product with autotuned tiles, programs grouped for L2 reuse, and an activation fused as a device function."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


def configurations():
    tiles = [(128, 128, 32, 4, 4), (64, 128, 32, 4, 4), (64, 64, 64, 3, 8), (32, 64, 32, 5, 2)]
    return [
        triton.Config({"TILE_M": m, "TILE_N": n, "TILE_K": k, "GROUP": 8}, num_stages=stages, num_warps=warps)
        for m, n, k, stages, warps in tiles
    ]


@triton.autotune(configs=configurations(), key=["M", "N", "K"])
@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, a_m, a_k, b_k, b_n, c_m, c_n,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    rows = tl.cdiv(M, TILE_M)
    columns = tl.cdiv(N, TILE_N)
    per_group = GROUP * columns
    group = pid // per_group
    first = group * GROUP
    height = min(rows - first, GROUP)
    tile_m = first + (pid % per_group) % height
    tile_n = (pid % per_group) // height
    tl.assume(tile_m >= 0)
    tl.assume(tile_n >= 0)

    m = (tile_m * TILE_M + tl.arange(0, TILE_M)) % M
    n = (tile_n * TILE_N + tl.arange(0, TILE_N)) % N
    k = tl.arange(0, TILE_K)
    a = a_ptr + m[:, None] * a_m + k[None, :] * a_k
    b = b_ptr + k[:, None] * b_k + n[None, :] * b_n
    accumulator = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, TILE_K)):
        left = tl.load(a, mask=k[None, :] < K - step * TILE_K, other=0.0)
        right = tl.load(b, mask=k[:, None] < K - step * TILE_K, other=0.0)
        accumulator = tl.dot(left, right, accumulator)
        a += TILE_K * a_k
        b += TILE_K * b_k
    if ACTIVATION == "leaky":
        accumulator = leaky(accumulator)
    c = accumulator.to(tl.float16)
    m = tile_m * TILE_M + tl.arange(0, TILE_M)
    n = tile_n * TILE_N + tl.arange(0, TILE_N)
    tl.store(c_ptr + c_m * m[:, None] + c_n * n[None, :], c, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.01 * x)


def matmul(a, b, activation=""):
    assert a.shape[1] == b.shape[0] and a.is_contiguous()
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)
    grid = lambda meta: (triton.cdiv(M, meta["TILE_M"]) * triton.cdiv(N, meta["TILE_N"]),)  # noqa: E731
    product_kernel[grid](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        ACTIVATION=activation,
    )  # fmt: skip
    return c


torch.manual_seed(0)
a = torch.rand((512, 512), device=DEVICE, dtype=torch.float16) - 0.5
b = torch.rand((512, 512), device=DEVICE, dtype=torch.float16) - 0.5
if torch.allclose(matmul(a, b), torch.matmul(a, b), atol=1e-2, rtol=0):
    print("matches torch")
else:
    print("differs from torch")
