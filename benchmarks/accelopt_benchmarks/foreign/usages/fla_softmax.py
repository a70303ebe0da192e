"""Softmax over the last dimension and its gradient, as fla's gated slot attention uses them."""

import torch
from fla.ops.utils.softmax import softmax_bwd, softmax_fwd

for rows, columns in ((16384, 64), (2048, 256)):
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    softmax_bwd(softmax_fwd(x), torch.randn_like(x))
