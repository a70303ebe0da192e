"""The kernels of unsloth's layers: RMS norm with its gradient, SwiGLU, rotary embedding."""

import torch
import unsloth  # noqa: F401  (patches what it finds before its kernels are used)
from unsloth.kernels.rms_layernorm import Fast_RMS_Layernorm
from unsloth.kernels.rope_embedding import fast_rope_embedding
from unsloth.kernels.swiglu import swiglu_DWf_DW_dfg_kernel, swiglu_fg_kernel


def main(batch=2, length=1024, hidden=4096, inner=11008, heads=32, size=128):
    options = {"device": "cuda", "dtype": torch.float16}
    x = torch.randn(batch, length, hidden, **options).requires_grad_()
    Fast_RMS_Layernorm.apply(x, torch.randn(hidden, **options), 1e-6, False).sum().backward()
    swiglu_fg_kernel(
        torch.randn(batch, length, inner, **options), torch.randn(batch, length, inner, **options)
    )
    swiglu_DWf_DW_dfg_kernel(*(torch.randn(batch * length, inner, **options) for _ in range(3)))
    q, k = (torch.randn(batch, heads, length, size, **options) for _ in range(2))
    angles = torch.randn(length, size, **options)
    fast_rope_embedding(q, k, angles.cos(), angles.sin())


main()
