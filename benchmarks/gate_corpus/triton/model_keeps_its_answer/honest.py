import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, y_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        depth = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * k + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        w = tl.load(
            w_ptr + cols[None, :] * k + depth[:, None],
            mask=(cols[None, :] < n) & (depth[:, None] < k),
            other=0.0,
        )
        total += tl.dot(x, w, input_precision="ieee")
    y = total + tl.load(b_ptr + cols, mask=cols < n, other=0.0)[None, :]
    y = tl.where(y > 0, y, 0.1 * y)
    tl.store(y_ptr + rows[:, None] * n + cols[None, :], y, mask=(rows[:, None] < m) & (cols[None, :] < n))


def linear(x, w, b):
    (m, k), n = x.shape, w.shape[0]
    y = torch.empty((m, n), device=x.device, dtype=x.dtype)
    linear_kernel[(triton.cdiv(m, 16), triton.cdiv(n, 16))](x, w, b, y, m, n, k, BM=16, BN=16, BK=16)
    return y


class ModelNew(nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.linear = nn.Linear(wide, out)
        self._weight = None

    def forward(self, x):
        if self._weight is None:
            self._weight = self.linear.weight.detach().contiguous()
        return linear(x.contiguous(), self._weight, self.linear.bias)
