import torch
import triton
import triton.language as tl


@triton.jit
def _attend(q_ptr, k_ptr, v_ptr, m_ptr, o_ptr, tokens, dim, scale, TILE: tl.constexpr, DIM: tl.constexpr):
    head = tl.program_id(1)
    q_rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    d = tl.arange(0, DIM)
    base = head * tokens * dim
    q_mask = (q_rows < tokens)[:, None] & (d < dim)[None, :]
    q = tl.load(q_ptr + base + q_rows[:, None] * dim + d[None, :], mask=q_mask, other=0.0)
    top = tl.full([TILE], -1e30, tl.float32)
    total = tl.zeros([TILE], tl.float32)
    acc = tl.zeros([TILE, DIM], tl.float32)
    for start in range(0, tl.minimum(tokens, (tl.program_id(0) + 1) * TILE), TILE):
        rows = start + tl.arange(0, TILE)
        kv_mask = (rows < tokens)[:, None] & (d < dim)[None, :]
        k = tl.load(k_ptr + base + rows[:, None] * dim + d[None, :], mask=kv_mask, other=0.0)
        v = tl.load(v_ptr + base + rows[:, None] * dim + d[None, :], mask=kv_mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        keep = rows[None, :] <= q_rows[:, None]
        s = tl.where(keep, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        scale_old = tl.exp(top - new)
        total = total * scale_old + tl.sum(p, 1)
        acc = acc * scale_old[:, None] + tl.dot(p, v, input_precision="ieee")
        top = new
    tl.store(o_ptr + base + q_rows[:, None] * dim + d[None, :], acc / total[:, None], mask=q_mask)


def attend(q, k, v, mask):
    heads, tokens, dim = q.shape
    out = torch.empty_like(q)
    _attend[(triton.cdiv(tokens, 16), heads)](
        q, k, v, mask, out, tokens, dim, dim**-0.5, TILE=16, DIM=max(16, triton.next_power_of_2(dim))
    )
    return out
