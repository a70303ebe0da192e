import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def bag_tile(id_ptr, t_ptr, o_ptr, L, W, LB: tl.constexpr, BLOCK: tl.constexpr):
    bag = tl.program_id(0)
    k = tl.arange(0, LB)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(id_ptr + bag * L + k, mask=k < L, other=0)
    keep = (k < L)[:, None] & (c < W)[None, :]
    tile = tl.load(t_ptr + word[:, None] * W + c[None, :], mask=keep, other=-float("inf"))
    tl.store(o_ptr + bag * W + c, tl.max(tile, axis=0), mask=c < W)


class ModelNew(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Parameter(torch.randn(words, width))

    def forward(self, ids):
        W = self.table.shape[1]
        out = torch.empty(ids.shape[0], W, dtype=self.table.dtype, device=ids.device)
        grid = (ids.shape[0], triton.cdiv(W, 16))
        bag_tile[grid](
            ids.contiguous(),
            self.table.detach(),
            out,
            ids.shape[1],
            W,
            LB=triton.next_power_of_2(ids.shape[1]),
            BLOCK=16,
        )
        return out
