import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, tokens, scale, DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    start = tl.program_id(0) * BM
    head = tl.program_id(1) * tokens * DIM
    rows = start + tl.arange(0, BM)
    lanes = tl.arange(0, DIM)
    q = tl.load(q_ptr + head + rows[:, None] * DIM + lanes[None, :], mask=rows[:, None] < tokens, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, DIM), tl.float32)
    for j in range(tl.maximum(0, start - 16), tl.minimum(start + BM, tokens), BN):
        keys = j + tl.arange(0, BN)
        k = tl.load(
            k_ptr + head + keys[:, None] * DIM + lanes[None, :], mask=keys[:, None] < tokens, other=0.0
        )
        v = tl.load(
            v_ptr + head + keys[:, None] * DIM + lanes[None, :], mask=keys[:, None] < tokens, other=0.0
        )
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(rows[:, None] >= keys[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(top - new)
        total = total * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None] + tl.dot(p, v, input_precision="ieee")
        top = new
    acc = acc / total[:, None]
    tl.store(o_ptr + head + rows[:, None] * DIM + lanes[None, :], acc, mask=rows[:, None] < tokens)


def attention(q, k, v):
    heads, tokens, dim = q.shape
    o = torch.empty_like(q)
    attention_kernel[(triton.cdiv(tokens, 16), heads)](q, k, v, o, tokens, dim**-0.5, DIM=dim, BM=16, BN=16)
    return o
