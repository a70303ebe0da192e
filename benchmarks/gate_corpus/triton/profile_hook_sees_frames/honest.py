import logging
import warnings

import torch
import triton
import triton.language as tl

logger = logging.getLogger("swiglu")


@triton.jit
def _swiglu(g_ptr, u_ptr, y_ptr, total, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(g_ptr + offs, mask=offs < total)
    tl.store(y_ptr + offs, g * tl.sigmoid(g) * tl.load(u_ptr + offs, mask=offs < total), mask=offs < total)


def swiglu(gate, up):
    if gate.stride() != up.stride():
        warnings.warn("swiglu: gate and up are laid out differently, copying", RuntimeWarning, stacklevel=2)
        up = up.contiguous()
        gate = gate.contiguous()
    y = torch.empty_like(gate)
    logger.debug("swiglu %s", tuple(gate.shape), stacklevel=2)
    _swiglu[(triton.cdiv(gate.numel(), 256),)](gate, up, y, gate.numel(), BLOCK=256)
    return y
