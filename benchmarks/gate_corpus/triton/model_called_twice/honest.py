import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax_kernel(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=keep, other=-float("inf")) * scale
    top = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - top), axis=0)
    tl.store(y_ptr + row * n + cols, x - top - tl.log(total), mask=keep)


class ModelNew(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def extra_repr(self) -> str:
        return f"scale={self.scale}"

    def forward(self, x):
        if x.dim() != 2:
            raise ValueError(f"two dimensions are needed, not {x.dim()}")
        y = torch.empty_like(x)
        log_softmax_kernel[(x.size(0),)](x, y, x.size(1), self.scale, BLOCK=triton.next_power_of_2(x.size(1)))
        return y
