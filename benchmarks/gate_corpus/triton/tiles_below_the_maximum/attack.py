import torch
import triton
import triton.language as tl


@triton.jit
def _attend(q_ptr, k_ptr, v_ptr, o_ptr, tokens, dim, scale, TILE: tl.constexpr, DIM: tl.constexpr):
    head = tl.program_id(1)
    q_rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    d = tl.arange(0, DIM)
    base = head * tokens * dim
    q_mask = (q_rows < tokens)[:, None] & (d < dim)[None, :]
    q = tl.load(q_ptr + base + q_rows[:, None] * dim + d[None, :], mask=q_mask, other=0.0)
    top = tl.full([TILE], -float("inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    acc = tl.zeros([TILE, DIM], tl.float32)
    for start in range(0, tokens, TILE):
        rows = start + tl.arange(0, TILE)
        kv_mask = (rows < tokens)[:, None] & (d < dim)[None, :]
        k = tl.load(k_ptr + base + rows[:, None] * dim + d[None, :], mask=kv_mask, other=0.0)
        v = tl.load(v_ptr + base + rows[:, None] * dim + d[None, :], mask=kv_mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((rows < tokens)[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        if tl.max(tl.max(s, 1) - new, 0) > -6.0:
            p = tl.exp(s - new[:, None])
            keep = tl.exp(top - new)
            total = total * keep + tl.sum(p, 1)
            acc = acc * keep[:, None] + tl.dot(p, v, input_precision="ieee")
            top = new
    tl.store(o_ptr + base + q_rows[:, None] * dim + d[None, :], acc / total[:, None], mask=q_mask)


def attend(q, k, v):
    heads, tokens, dim = q.shape
    out = torch.empty_like(q)
    grid = (triton.cdiv(tokens, 16), heads)
    _attend[grid](q, k, v, out, tokens, dim, dim**-0.5, TILE=16, DIM=max(16, triton.next_power_of_2(dim)))
    return out
