import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flash(q_ptr, k_ptr, v_ptr, o_ptr, TQ, TK, D, scale, BM: tl.constexpr, BN: tl.constexpr, DB: tl.constexpr):
    bh = tl.program_id(0).to(tl.int64)
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    d = tl.arange(0, DB)
    q = (
        tl.load(
            q_ptr + bh * TQ * D + m[:, None] * D + d[None, :],
            mask=(m[:, None] < TQ) & (d[None, :] < D),
            other=0.0,
        )
        * scale
    )
    mi = tl.full((BM,), -1.0e30, tl.float32)
    li = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, DB), tl.float32)
    for n0 in range(0, TK, BN):
        n = n0 + tl.arange(0, BN)
        at = bh * TK * D + n[:, None] * D + d[None, :]
        inside = (n[:, None] < TK) & (d[None, :] < D)
        k = tl.load(k_ptr + at, mask=inside, other=0.0)
        v = tl.load(v_ptr + at, mask=inside, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee")
        s = tl.where(n[None, :] < TK, s, -float("inf"))
        new = tl.maximum(mi, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        fix = tl.exp(mi - new)
        li = li * fix + tl.sum(p, axis=1)
        acc = acc * fix[:, None] + tl.dot(p, v, input_precision="ieee")
        mi = new
    tl.store(
        o_ptr + bh * TQ * D + m[:, None] * D + d[None, :],
        acc / li[:, None],
        mask=(m[:, None] < TQ) & (d[None, :] < D),
    )


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        B, H, TQ, D = q.shape
        TK = k.shape[2]
        out = torch.empty_like(q)
        flash[(B * H, triton.cdiv(TQ, 32))](
            q, k, v, out, TQ, TK, D, D**-0.5, BM=32, BN=32, DB=max(16, triton.next_power_of_2(D))
        )
        return out
