import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0
        )
        w = tl.load(
            w_ptr + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0
        )
        acc += tl.dot(x, w, input_precision="ieee")
    acc += tl.load(b_ptr + rn, mask=rn < N, other=0.0)[None, :]
    acc = tl.maximum(acc, 0.0) * 0.5
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def forward(x, weight, bias):
    weight = weight.t().contiguous()
    y = torch.empty(x.shape[0], weight.shape[1], device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(weight.shape[1], 16))
    linear_kernel[grid](x, weight, bias, y, x.shape[0], weight.shape[1], x.shape[1], BM=16, BN=16, BK=16)
    return y


class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        y = forward(x, weight, bias)
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, y = ctx.saved_tensors
        dz = dy * 0.5 * (y > 0)
        return dz @ weight, dz.t() @ x, dz.sum(0)


class ModelNew(nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.linear = nn.Linear(wide, out)

    def forward(self, x):
        if torch.is_grad_enabled() and (x.requires_grad or self.linear.weight.requires_grad):
            return LinearFunction.apply(x, self.linear.weight, self.linear.bias)
        return forward(x, self.linear.weight, self.linear.bias)
