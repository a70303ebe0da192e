# ruff: noqa: PT028 - written as a user would
"""Causal attention in one pass over the keys, with the running maximum and sum kept per row."""

import pytest
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def over_keys(
    acc, l_i, m_i, q, k_ptrs, v_ptrs, k_n, v_n, rows, scale, low, high, HEAD: tl.constexpr, TILE_N: tl.constexpr,
    MASKED: tl.constexpr, LENGTH: tl.constexpr,
):  # fmt: skip
    cols = tl.arange(0, TILE_N)
    k_ptrs += low * k_n
    v_ptrs += low * v_n
    for start in tl.range(low, high, TILE_N):
        start = tl.multiple_of(start, TILE_N)
        k = tl.load(k_ptrs)
        qk = tl.dot(q, k)
        if MASKED:
            keep = rows[:, None] >= (start + cols[None, :])
            qk = qk * scale + tl.where(keep, 0, -1.0e6)
            m_new = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_new[:, None]
        else:
            m_new = tl.maximum(m_i, tl.max(qk, 1) * scale)
            qk = qk * scale - m_new[:, None]
        p = tl.math.exp2(qk)
        correction = tl.math.exp2(m_i - m_new)
        l_i = l_i * correction + tl.sum(p, 1)
        acc = acc * correction[:, None]
        v = tl.load(v_ptrs)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new
        k_ptrs += TILE_N * k_n
        v_ptrs += TILE_N * v_n
    return acc, l_i, m_i


def keep(config):
    return config.kwargs["TILE_M"] >= config.kwargs["TILE_N"]


options = [
    triton.Config({"TILE_M": m, "TILE_N": n}, num_stages=s, num_warps=w)
    for m in (64, 128)
    for n in (32, 64)
    for s in (2, 3)
    for w in (4,)
]


@triton.autotune(list(filter(keep, options)), key=["LENGTH", "HEAD"])
@triton.jit
def attention_kernel(
    Q, K, V, Out, M, sm_scale, s_b, s_h, s_n, s_d, H,
    LENGTH: tl.constexpr, HEAD: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    tl.static_assert(TILE_N <= HEAD)
    tile = tl.program_id(0)
    both = tl.program_id(1)
    base = (both // H).to(tl.int64) * s_b + (both % H).to(tl.int64) * s_h
    rows = tile * TILE_M + tl.arange(0, TILE_M)
    depth = tl.arange(0, HEAD)
    cols = tl.arange(0, TILE_N)
    q = tl.load(Q + base + rows[:, None] * s_n + depth[None, :] * s_d)
    k_ptrs = K + base + depth[:, None] * s_d + cols[None, :] * s_n
    v_ptrs = V + base + cols[:, None] * s_n + depth[None, :] * s_d
    m_i = tl.zeros([TILE_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([TILE_M], dtype=tl.float32)
    acc = tl.zeros([TILE_M, HEAD], dtype=tl.float32)
    scale = sm_scale * 1.44269504
    if CAUSAL:
        acc, l_i, m_i = over_keys(
            acc,
            l_i,
            m_i,
            q,
            k_ptrs,
            v_ptrs,
            s_n,
            s_n,
            rows,
            scale,
            0,
            tile * TILE_M,
            HEAD,
            TILE_N,
            False,
            LENGTH,
        )
        acc, l_i, m_i = over_keys(
            acc, l_i, m_i, q, k_ptrs, v_ptrs, s_n, s_n, rows, scale, tile * TILE_M, (tile + 1) * TILE_M,
            HEAD, TILE_N, True, LENGTH,
        )  # fmt: skip
    else:
        acc, l_i, m_i = over_keys(
            acc, l_i, m_i, q, k_ptrs, v_ptrs, s_n, s_n, rows, scale, 0, LENGTH, HEAD, TILE_N, False, LENGTH
        )
    acc = acc / l_i[:, None]
    tl.store(M + both * LENGTH + rows, m_i + tl.math.log2(l_i))
    tl.store(Out + base + rows[:, None] * s_n + depth[None, :] * s_d, acc.to(Out.type.element_ty))


def attention(q, k, v, causal, sm_scale):
    out = torch.empty_like(q)
    batch, heads, length, head = q.shape
    M = torch.empty((batch, heads, length), device=q.device, dtype=torch.float32)
    grid = lambda meta: (triton.cdiv(length, meta["TILE_M"]), batch * heads)  # noqa: E731
    attention_kernel[grid](
        q, k, v, out, M, sm_scale, q.stride(0), q.stride(1), q.stride(2), q.stride(3), heads,
        LENGTH=length, HEAD=head, CAUSAL=causal,
    )  # fmt: skip
    return out


@pytest.mark.parametrize(("Z", "H", "N_CTX", "HEAD_DIM"), [(1, 2, 512, 64)])
@pytest.mark.parametrize("causal", [True])
def test_attention(Z, H, N_CTX, HEAD_DIM, causal, dtype=torch.float16):
    torch.manual_seed(20)
    shape = (Z, H, N_CTX, HEAD_DIM)
    q, k, v = (torch.empty(shape, dtype=dtype, device=DEVICE).normal_(mean=0.0, std=0.5) for _ in range(3))
    scores = torch.matmul(q, k.transpose(2, 3)).float() * 0.5
    if causal:
        scores[:, :, torch.tril(torch.ones((N_CTX, N_CTX), device=DEVICE)) == 0] = float("-inf")
    expected = torch.matmul(torch.softmax(scores, dim=-1).half(), v)
    torch.testing.assert_close(attention(q, k, v, causal, 0.5), expected, atol=1e-2, rtol=0)
