# ruff: noqa: PT028, RUF059 - written as a user would
"""Layer norm with its backward pass: weight gradients are summed in groups under locks, then over the groups."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def forward_kernel(X, Y, W, B, Mean, Rstd, stride, N, eps, TILE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    total = tl.zeros([TILE], dtype=tl.float32)
    for start in range(0, N, TILE):
        cols = start + tl.arange(0, TILE)
        total += tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([TILE], dtype=tl.float32)
    for start in range(0, N, TILE):
        cols = start + tl.arange(0, TILE)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for start in range(0, N, TILE):
        cols = start + tl.arange(0, TILE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(Y + cols, (x - mean) * rstd * w + b, mask=mask)


@triton.jit
def backward_kernel(
    DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, GROUPS: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    cols = tl.arange(0, WIDTH)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    group = row % GROUPS
    Lock += group
    Count = Lock + GROUPS
    DW = DW + group * N + cols
    DB = DB + group * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean = tl.load(Mean + row)
    rstd = tl.load(Rstd + row)
    xhat = tl.where(mask, (x - mean) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(DX + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
    partial_dw = (dy * xhat).to(w.dtype)
    partial_db = dy.to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        partial_dw += tl.load(DW, mask=mask)
        partial_db += tl.load(DB, mask=mask)
    tl.store(DW, partial_dw, mask=mask)
    tl.store(DB, partial_db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def gather_kernel(DW, DB, FINAL_DW, FINAL_DB, M, N, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    cols = tl.program_id(0) * TILE_N + tl.arange(0, TILE_N)
    dw = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    db = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for i in range(0, M, TILE_M):
        rows = i + tl.arange(0, TILE_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offs = rows[:, None] * N + cols[None, :]
        dw += tl.load(DW + offs, mask=mask, other=0.0)
        db += tl.load(DB + offs, mask=mask, other=0.0)
    tl.store(FINAL_DW + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(FINAL_DB + cols, tl.sum(db, axis=0), mask=cols < N)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shape, weight, bias, eps):
        y = torch.empty_like(x)
        flat = x.reshape(-1, x.shape[-1])
        M, N = flat.shape
        mean = torch.empty((M,), dtype=torch.float32, device=x.device)
        rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
        width = min(65536 // x.element_size(), triton.next_power_of_2(N))
        warps = min(max(width // 256, 1), 8)
        forward_kernel[(M,)](
            flat, y, weight, bias, mean, rstd, flat.stride(0), N, eps, TILE=width, num_warps=warps, num_ctas=1
        )
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.width, ctx.warps = width, warps
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, b, mean, rstd = ctx.saved_tensors
        N = w.shape[0]
        groups = 64 if N > 8192 else 96 if N > 4096 else 128 if N > 1024 else 256
        locks = torch.zeros(2 * groups, dtype=torch.int32, device=w.device)
        partial_dw = torch.zeros((groups, N), dtype=x.dtype, device=w.device)
        partial_db = torch.zeros((groups, N), dtype=x.dtype, device=w.device)
        dw = torch.empty((N,), dtype=w.dtype, device=w.device)
        db = torch.empty((N,), dtype=w.dtype, device=w.device)
        dx = torch.empty_like(dy)
        flat = x.reshape(-1, x.shape[-1])
        M, N = flat.shape
        backward_kernel[(M,)](
            dx, dy, partial_dw, partial_db, x, w, mean, rstd, locks, flat.stride(0), N,
            GROUPS=groups, WIDTH=ctx.width, num_warps=ctx.warps,
        )  # fmt: skip
        grid = lambda meta: [triton.cdiv(N, meta["TILE_N"])]  # noqa: E731
        gather_kernel[grid](
            partial_dw, partial_db, dw, db, min(groups, M), N, TILE_M=32, TILE_N=128, num_ctas=1
        )
        return dx, None, dw, db, None


layer_norm = LayerNorm.apply


def test_layer_norm(M=1151, N=1024, dtype=torch.float16, eps=1e-5):
    weight = torch.rand((N,), dtype=dtype, device=DEVICE, requires_grad=True)
    bias = torch.rand((N,), dtype=dtype, device=DEVICE, requires_grad=True)
    x = -2.3 + 0.5 * torch.randn((M, N), dtype=dtype, device=DEVICE)
    dy = 0.1 * torch.randn_like(x)
    x.requires_grad_(True)
    y = layer_norm(x, (N,), weight, bias, eps)
    expected = torch.nn.functional.layer_norm(x, (N,), weight, bias, eps).to(dtype)
    y.backward(dy, retain_graph=True)
    got = [g.grad.clone() for g in (x, weight, bias)]
    x.grad, weight.grad, bias.grad = None, None, None
    expected.backward(dy, retain_graph=True)
    assert torch.allclose(y, expected, atol=1e-2, rtol=0)
    for mine, theirs in zip(got, (x.grad, weight.grad, bias.grad), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-2, rtol=0)


if __name__ == "__main__":
    test_layer_norm()
