"""Small layers of several packages: a scan with its gradient, rotary embedding, int8 quantization, expert routing.

The argument names the package, since a person has one of them.
"""

import sys

import torch

OPTIONS = {"device": "cuda", "dtype": torch.bfloat16}


def accelerated_scan(batch=8, channels=512, length=2048):
    from accelerated_scan.scalar import scan

    gates, tokens = torch.rand(2, batch, channels, length, device="cuda")
    scan(gates.requires_grad_(), tokens.requires_grad_()).sum().backward()


def conch(tokens=4096, hidden=4096):
    from conch.kernels.quantization.int8 import static_scaled_int8_quant_launcher

    x = torch.randn(tokens, hidden, **OPTIONS)
    static_scaled_int8_quant_launcher(torch.empty_like(x, dtype=torch.int8), x, torch.rand(1, device="cuda"))


def lightllm(tokens=2048, heads=32, shared=8, size=128):
    from lightllm.models.llama.triton_kernel.rotary_emb import rotary_emb_fwd

    q, k = torch.randn(tokens, heads, size, **OPTIONS), torch.randn(tokens, shared, size, **OPTIONS)
    angles = torch.randn(tokens, size // 2, **OPTIONS)
    rotary_emb_fwd(q, k, angles.cos(), angles.sin())


def lmdeploy(tokens=1024, experts=256):
    from lmdeploy.pytorch.kernels.cuda.moe.route_noaux_tc import fused_noaux_tc_routing

    fused_noaux_tc_routing(torch.randn(tokens, experts, device="cuda"), torch.randn(experts, device="cuda"))


def flashinfer(batch=4, length=2048, heads=64):
    from flashinfer.triton.kernels.ssd_chunk_state import chunk_cumsum_fwd

    steps = torch.rand(batch, length, heads, device="cuda")
    chunk_cumsum_fwd(steps, -torch.rand(heads, device="cuda"), 256, dt_softplus=True)


def awq(tokens=16, hidden=4096, out=4096, group=128):
    from awq.modules.triton.gemm import awq_dequantize_triton, awq_gemm_triton

    packed = torch.randint(-(2**31), 2**31 - 1, (hidden, out // 8), dtype=torch.int32, device="cuda")
    zeros = torch.randint(-(2**31), 2**31 - 1, (hidden // group, out // 8), dtype=torch.int32, device="cuda")
    scales = torch.rand(hidden // group, out, device="cuda", dtype=torch.float16)
    awq_dequantize_triton(packed, scales, zeros)
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.float16)
    awq_gemm_triton(x, packed, scales, zeros, split_k_iters=8)


def torchrec(batch=4096, size=128):
    from torchrec.sparse.triton_permute_multi_embedding import triton_permute_multi_embedding

    values = [torch.randn(batch, 2 * size, device="cuda") for _ in range(2)]
    moves = [[0, 0, 0, size, size, -1], [1, 0, 0, 0, size, -1], [0, 1, size, 0, size, -1]]
    permutes = torch.tensor(moves, dtype=torch.int32, device="cuda")
    widths = torch.tensor([2 * size, 2 * size], dtype=torch.int32, device="cuda")
    lengths = [2 * size, size]
    outs = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    triton_permute_multi_embedding(values, permutes, widths, outs, lengths)


def vllm(requests=256, length=4096):
    from vllm.v1.worker.gpu.sample.trace_replay import apply_trace_tokens

    sampled = torch.randint(0, 32000, (requests, 1), device="cuda")
    order = torch.randperm(requests, device="cuda").to(torch.int32)
    tokens = torch.randint(0, 32000, (requests, length), dtype=torch.int32, device="cuda")
    counts = [torch.full((requests,), n, dtype=torch.int32, device="cuda") for n in (length, 300, 200)]
    apply_trace_tokens(sampled, order, tokens, *counts)


globals()[sys.argv[1]]()
