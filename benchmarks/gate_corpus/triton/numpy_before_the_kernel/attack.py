import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def _relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.maximum(tl.load(x_ptr + offs, mask=offs < n), 0.0), mask=offs < n)


def _basis(n):
    k = np.arange(n, dtype=np.float64)
    return np.cos(np.pi / n * (k[None, :] + 0.5) * k[:, None]).astype(np.float32)


def dct(x):
    h = torch.from_numpy(x.cpu().numpy() @ _basis(x.shape[1]).T).to(x.device)
    y = torch.empty_like(x)
    _relu[(triton.cdiv(x.numel(), 256),)](h, y, x.numel(), BLOCK=256)
    return y
