"""KernelBench level 2, problem 12 (linear, scale, leaky ReLU): the product in Triton, the rest in a second kernel."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, tl.cdiv(K, BLOCK_K)):
        rk = k0 * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0
        )
        w = tl.load(
            w_ptr + rn[None, :] * K + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K), other=0.0
        )
        acc = tl.dot(x, w, acc)
    acc += tl.load(b_ptr + rn, mask=rn < N, other=0.0)[None, :]
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def scale_leaky_relu_kernel(y_ptr, out_ptr, n, multiplier, slope, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n) * multiplier
    tl.store(out_ptr + i, tl.where(y > 0, y, y * slope), mask=i < n)


def linear_leaky_relu(x, weight, bias, multiplier, negative_slope):
    M, K = x.shape
    N = weight.shape[0]
    y = torch.empty((M, N), device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    linear_kernel[grid](x, weight, bias, y, M, N, K, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    out = torch.empty_like(y)
    scale_leaky_relu_kernel[(triton.cdiv(M * N, 1024),)](
        y, out, M * N, multiplier, negative_slope, BLOCK=1024
    )
    return out


entry = "linear_leaky_relu"


def get_inputs(batch=1024, features=8192):
    weight = torch.randn(features, features, device="cuda") / features**0.5
    return [
        torch.rand(batch, features, device="cuda"),
        weight,
        torch.randn(features, device="cuda"),
        2.0,
        0.1,
    ]


def reference(x, weight, bias, multiplier, negative_slope):
    y = torch.nn.functional.linear(x, weight, bias) * multiplier
    return torch.nn.functional.leaky_relu(y, negative_slope)


shapes = [{"batch": 5, "features": 70}, {"batch": 64, "features": 128}]
