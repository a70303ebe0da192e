"""Products of quantized matrices with torchao: int8 by int8, and bfloat16 by 4-bit weights in groups."""

import torch
from torchao.kernel import intmm_triton
from torchao.prototype.hqq import pack_2xint4, triton_mixed_mm


def integers(m, n, k):
    a = torch.randint(-128, 127, (m, k), dtype=torch.int8, device="cuda")
    b = torch.randint(-128, 127, (k, n), dtype=torch.int8, device="cuda")
    configuration = intmm_triton.int8_mm_kernel_configs[0]
    intmm_triton.int_matmul_kernel(a, b, torch.empty(m, n, dtype=torch.int32, device="cuda"), configuration)
    scales = torch.rand(m, 1, dtype=torch.bfloat16, device="cuda")
    out = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")
    intmm_triton.int_scaled_matmul_kernel(a, b, scales, out, configuration)


def mixed(m, n, k, group=128):
    x = torch.randn(m, k, dtype=torch.bfloat16, device="cuda")
    weight = torch.randint(0, 15, (n, k), dtype=torch.uint8, device="cuda")
    scales, zeros = (torch.rand(n, k // group, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    triton_mixed_mm(x, pack_2xint4(weight.T), scales.T, zeros.T, group_size=group)


integers(2048, 4096, 4096)
mixed(16, 4096, 4096)
