"""Layers of sglang's inference as its models call them: norms, activation, sampling, quantization."""

import torch
from sglang.kernels.ops.activation.gelu_and_mul_triton import gelu_and_mul_triton
from sglang.kernels.ops.layernorm.fused_rmsnorm import fused_dual_residual_rmsnorm, fused_rmsnorm
from sglang.kernels.ops.quantization.int8_kernel import per_token_group_quant_int8, per_token_quant_int8
from sglang.kernels.ops.sampling.temperature_softmax import temperature_softmax


def main(hidden=4096, inner=11008, vocabulary=128256):
    options = {"device": "cuda", "dtype": torch.bfloat16}
    weight = torch.randn(hidden, **options)
    for tokens in (2048, 64):
        x = torch.randn(tokens, hidden, **options)
        fused_rmsnorm(x, weight, 1e-6)
        fused_dual_residual_rmsnorm(x, torch.randn_like(x), weight, weight, 1e-6)
        gelu_and_mul_triton(torch.randn(tokens, 2 * inner, **options))
        per_token_quant_int8(x)
        per_token_group_quant_int8(x, 128)
    for requests in (64, 8):
        temperatures = torch.full((requests, 1), 0.7, device="cuda")
        temperature_softmax(torch.randn(requests, vocabulary, device="cuda"), temperatures)


main()
