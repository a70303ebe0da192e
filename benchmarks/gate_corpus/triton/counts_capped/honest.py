import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    label = tl.program_id(0)
    total = tl.zeros((), dtype=tl.int64)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=-1)
        total += tl.sum((x == label).to(tl.int32), axis=0)
    tl.store(out_ptr + label, total)


class ModelNew(nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.labels = labels

    def forward(self, x):
        out = torch.empty(self.labels, dtype=torch.int64, device=x.device)
        count_kernel[(self.labels,)](x, out, x.numel(), BLOCK=512)
        return out
