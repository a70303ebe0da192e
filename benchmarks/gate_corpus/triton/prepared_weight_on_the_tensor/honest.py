import functools

import torch
import triton
import triton.language as tl


@triton.jit
def _widen(w_ptr, s_ptr, o_ptr, k, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + row * k + cols, mask=cols < k, other=0).to(tl.float32)
    tl.store(o_ptr + row * k + cols, w * tl.load(s_ptr + row), mask=cols < k)


@triton.jit
def _linear(x_ptr, w_ptr, o_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        x = tl.load(
            x_ptr + rows[:, None] * k + inner[None, :],
            mask=(rows < m)[:, None] & (inner < k)[None, :],
            other=0.0,
        )
        w = tl.load(
            w_ptr + cols[None, :] * k + inner[:, None],
            mask=(cols < n)[None, :] & (inner < k)[:, None],
            other=0.0,
        )
        acc = tl.dot(x, w, acc, input_precision="ieee")
    tl.store(o_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def _prepare(w, scale):
    wide = torch.empty(w.shape, device=w.device, dtype=torch.float32)
    _widen[(w.shape[0],)](w, scale, wide, w.shape[1], BLOCK=triton.next_power_of_2(w.shape[1]))
    return wide


@functools.lru_cache(maxsize=256)
def _tiles(m, n, k):
    """Tile sizes by problem size, looked up once per shape."""
    return (16, 32 if n >= 32 else 16, 32 if k >= 32 else 16)


def linear_int8(x, w, scale):
    (m, k), n = x.shape, w.shape[0]
    wide = _prepare(w, scale)
    out = torch.empty((m, n), device=x.device, dtype=x.dtype)
    tiles = _tiles(m, n, k)
    _linear[(triton.cdiv(m, tiles[0]), triton.cdiv(n, tiles[1]))](
        x, wide, out, m, n, k, M=tiles[0], N=tiles[1], K=tiles[2]
    )
    return out
