"""Kernels of tritonbench's operators, called as the operators call them."""

import torch
import triton
from tritonbench.operators.gather_gemv.triton_gather_gemv import triton_gemv_0
from tritonbench.operators.gemm.triton_matmul import matmul
from tritonbench.operators.jagged_softmax import kernels as softmax
from tritonbench.operators.jagged_sum import kernels as sums
from tritonbench.operators.welford.triton_welford import fused_native_layer_norm


def jagged(batch=256, columns=512, longest=64):
    lengths = torch.randint(1, longest, (batch,))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to("cuda")
    values = torch.randn(int(lengths.sum()), columns, device="cuda")

    def grid(meta):
        return (batch * triton.cdiv(columns, meta["BLOCK_SIZE_M"]),)

    summed = torch.zeros(batch, columns, device="cuda")
    sums.triton_jagged_sum_kernel_simple_fused_sum_then_buffer[grid](
        values, offsets, summed, M=columns, MAX_SEQLEN=longest
    )
    softmax.triton_jagged_softmax_kernel_simple_fused_buffer_then_sum[grid](
        values, offsets, torch.zeros_like(values), M=columns, MAX_SEQLEN=longest
    )


def main():
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(2))
    matmul(a, b)
    weights = torch.randint(-8, 8, (8, 2048, 2048), dtype=torch.int8, device="cuda")
    triton_gemv_0(weights, torch.tensor([1, 5], device="cuda"), torch.randn(2048, device="cuda").bfloat16())
    weight, bias = (torch.randn(2048, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    fused_native_layer_norm(weight, bias, torch.randn(4096, 2048, device="cuda", dtype=torch.bfloat16))
    jagged()


main()
