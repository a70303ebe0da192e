import torch
import triton
import triton.language as tl

try:
    from triton.language.extra.libdevice import exp as _exp
except ImportError:
    _exp = None

if _exp is None:
    _exp = tl.exp


@triton.jit
def _attend(
    q_ptr, k_ptr, v_ptr, o_ptr, tokens, dim, scale, TILE: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr
):
    head = tl.program_id(1)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    keys = tl.arange(0, KEYS)
    d = tl.arange(0, DIM)
    base = head * tokens * dim
    q = tl.load(
        q_ptr + base + rows[:, None] * dim + d[None, :],
        mask=(rows < tokens)[:, None] & (d < dim)[None, :],
        other=0.0,
    )
    k = tl.load(
        k_ptr + base + keys[:, None] * dim + d[None, :],
        mask=(keys < tokens)[:, None] & (d < dim)[None, :],
        other=0.0,
    )
    v = tl.load(
        v_ptr + base + keys[:, None] * dim + d[None, :],
        mask=(keys < tokens)[:, None] & (d < dim)[None, :],
        other=0.0,
    )
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    s = tl.where((keys < tokens)[None, :], s, -float("inf"))
    p = tl.exp(s - tl.max(s, 1)[:, None])
    o = tl.dot(p, v, input_precision="ieee") / tl.sum(p, 1)[:, None]
    tl.store(
        o_ptr + base + rows[:, None] * dim + d[None, :], o, mask=(rows < tokens)[:, None] & (d < dim)[None, :]
    )


def attend(q, k, v):
    heads, tokens, dim = q.shape
    out = torch.empty_like(q)
    _attend[(triton.cdiv(tokens, 16), heads)](
        q,
        k,
        v,
        out,
        tokens,
        dim,
        dim**-0.5,
        TILE=16,
        KEYS=max(16, triton.next_power_of_2(tokens)),
        DIM=max(16, triton.next_power_of_2(dim)),
    )
    return out
