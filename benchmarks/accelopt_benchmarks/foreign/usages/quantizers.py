"""Quantized weights and activations of several packages: packing, scales, products; the argument names the package."""

import sys

import torch

HALF = {"device": "cuda", "dtype": torch.float16}
BRAIN = {"device": "cuda", "dtype": torch.bfloat16}


def integers(*shape, dtype=torch.int32, low=-(2**31), high=2**31 - 1):
    return torch.randint(low, high, shape, dtype=dtype, device="cuda")


def bitsandbytes(hidden=4096, block=64):
    from bitsandbytes.backends.triton import kernels_4bit

    weight = torch.randn(hidden, hidden, **BRAIN)
    blocks = weight.numel() // block
    scales = torch.empty(blocks, device="cuda", dtype=torch.float32)
    packed = torch.empty(weight.numel() // 2, 1, device="cuda", dtype=torch.uint8)
    for kind in ("nf4", "fp4"):
        kernels_4bit.quantize_4bit_blockwise_triton(
            weight, block, kind, blocks, scales, weight.numel(), packed
        )
        kernels_4bit.dequantize_4bit_impl(packed, scales, block, kind, weight.dtype, torch.empty_like(weight))


def compressed_tensors(hidden=4096):
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import quantize

    arguments = QuantizationArgs(num_bits=8, type="int", symmetric=True, strategy="channel")
    weight, scale = torch.randn(hidden, hidden, **BRAIN), torch.rand(hidden, 1, **BRAIN) / 64
    quantize(weight, scale, torch.zeros_like(scale), arguments, dtype=torch.int8)


def compressed_tensors_fp4(hidden=4096):
    from compressed_tensors.quantization.utils.fp4_utils import cast_to_fp4

    cast_to_fp4(torch.randn(hidden, hidden, **BRAIN))


def gemlite_bits(rows=4096, columns=4096):
    from gemlite import bitpack

    weight = integers(rows, columns, dtype=torch.uint8, low=0, high=15)
    packed, _ = bitpack.pack_weights_over_cols_triton(weight, 4, 32, transpose=False)
    bitpack.unpack_over_cols_triton(packed, 4, columns)
    packed, _ = bitpack.pack_weights_over_rows_triton(weight, 4, 32, transpose=False)
    bitpack.unpack_over_rows_triton(packed, 4, rows)


def gemlite_scales(tokens=512, hidden=4096):
    from gemlite import quant_utils

    x = torch.randn(tokens, hidden, **BRAIN)
    quant_utils.scale_activations_per_token(x, torch.float8_e4m3fn)
    quant_utils.scale_activations_mxfp8(x)


def gemlite_product(tokens=16, hidden=4096, group=128):
    from gemlite import DType, GemLiteLinearTriton
    from gemlite.triton_kernels import gemm_splitK_persistent

    layer = GemLiteLinearTriton(
        W_nbits=4, group_size=group, in_features=hidden, out_features=hidden, input_dtype=DType.FP16,
        output_dtype=DType.FP16,
    )  # fmt: skip
    weight = integers(hidden, hidden, dtype=torch.uint8, low=0, high=15)
    scales, zeros = (torch.rand(hidden * hidden // group, 1, **HALF) for _ in range(2))
    layer.pack(weight, scales, zeros, bias=None)
    kind = DType.FP16.value * 100 + layer.W_nbits
    options = (*layer.get_meta_args()[1:-1], layer.data_contiguous, kind)
    x = torch.randn(tokens, hidden, **HALF)
    gemm_splitK_persistent.forward(x, *layer.get_tensor_args()[:3], torch.ones(1, device="cuda"), *options)


def gptqmodel_nvfp4(tokens=512, hidden=4096):
    from gptqmodel.nn_modules.qlinear.w4a_nvfp4_triton import nvfp4_decode, nvfp4_pack_and_swizzle

    x, scale = torch.randn(tokens, hidden, **BRAIN), torch.tensor([0.01], device="cuda")
    nvfp4_decode(*nvfp4_pack_and_swizzle(x, scale), scale, hidden, torch.bfloat16)


def gptqmodel(tokens=16, hidden=4096, group=128):
    from gptqmodel.nn_modules.triton_utils.dequant import quant_matmul

    groups = torch.arange(hidden, dtype=torch.int32, device="cuda") // group
    scales = torch.rand(hidden // group, hidden, **HALF)
    zeros = integers(hidden // group, hidden // 8)
    quant_matmul(
        torch.randn(tokens, hidden, **HALF), integers(hidden // 8, hidden), scales, zeros, groups, 4, 32, 15
    )


def lightllm(tokens=16, hidden=4096):
    from lightllm.common.basemodel.triton_kernel.dequantize_gemm_int8 import (
        matmul_dequantize_int8,
        quantize_int8,
    )

    weight, scale = quantize_int8(torch.randn(hidden, hidden, **HALF))
    matmul_dequantize_int8(torch.randn(tokens, hidden, **HALF), weight, scale.unsqueeze(0))


def modelopt(rows=1024, hidden=4096):
    from modelopt.torch.kernels.quantization.gemm.fp4_kernel_hopper import fp4_fake_quant_block

    weight = torch.randn(rows, hidden, **BRAIN)
    fp4_fake_quant_block(weight, weight.abs().amax())


def modelopt_sweep(rows=256, hidden=1024):
    from modelopt.torch.kernels.quantization.gemm import nvfp4_fp8_sweep

    weight = torch.randn(rows, hidden, **BRAIN)
    largest = weight.abs().amax().float()
    nvfp4_fp8_sweep.nvfp4_fp8_scale_sweep(weight, largest)
    hessian = torch.eye(16, device="cuda").repeat(hidden // 16, 1, 1)
    nvfp4_fp8_sweep.nvfp4_fp8_scale_sweep_hessian(weight, largest, hessian)


globals()[sys.argv[1]]()
