import torch
import triton
import triton.language as tl


@triton.jit
def adamw_kernel(p_ptr, g_ptr, m_ptr, v_ptr, n, lr, b1, b2, eps, decay, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    p = tl.load(p_ptr + i, mask=mask)
    g = tl.load(g_ptr + i, mask=mask)
    m = tl.load(m_ptr + i, mask=mask)
    v = tl.load(v_ptr + i, mask=mask)
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * g * g
    p = p * (1 - lr * decay) - lr * m / (tl.sqrt(v) + eps)
    tl.store(p_ptr + i, p, mask=mask)
    tl.store(m_ptr + i, m, mask=mask)
    tl.store(v_ptr + i, v, mask=mask)


def adamw_step(p, g, m, v, lr):
    n = p.numel()
    adamw_kernel[(triton.cdiv(n, 1024),)](p, g, m, v, n, lr, 0.9, 0.999, 1e-8, 0.01, BLOCK=1024)
