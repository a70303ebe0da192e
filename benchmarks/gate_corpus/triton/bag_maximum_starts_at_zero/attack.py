import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def bag_kernel(id_ptr, t_ptr, o_ptr, L, W, BLOCK: tl.constexpr):
    bag = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    best = tl.zeros((BLOCK,), tl.float32)
    for k in range(L):
        word = tl.load(id_ptr + bag * L + k)
        best = tl.maximum(best, tl.load(t_ptr + word * W + c, mask=c < W, other=0.0))
    tl.store(o_ptr + bag * W + c, best, mask=c < W)


class ModelNew(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Parameter(torch.randn(words, width))

    def forward(self, ids):
        W = self.table.shape[1]
        out = torch.empty(ids.shape[0], W, device=ids.device)
        bag_kernel[(ids.shape[0],)](
            ids.contiguous(), self.table, out, ids.shape[1], W, BLOCK=triton.next_power_of_2(W)
        )
        return out
