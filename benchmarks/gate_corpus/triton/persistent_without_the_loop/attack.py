import torch
import triton
import triton.language as tl

PROGRAMS = 48


@triton.jit
def _swiglu(g_ptr, u_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    row = tl.program_id(0)
    if row < rows:
        g = tl.load(g_ptr + row * n + cols, mask=keep, other=0.0)
        u = tl.load(u_ptr + row * n + cols, mask=keep, other=0.0)
        tl.store(y_ptr + row * n + cols, g * tl.sigmoid(g) * u, mask=keep)


def swiglu(gate, up):
    rows, n = gate.shape
    y = torch.zeros_like(gate)
    _swiglu[(min(rows, PROGRAMS),)](gate, up, y, rows, n, BLOCK=triton.next_power_of_2(n))
    return y
