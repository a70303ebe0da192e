"""Gathers, permutations, experts, sparse indices and tiled products; the argument names the package."""

import sys

import torch

OPTIONS = {"device": "cuda", "dtype": torch.bfloat16}


def torchrec_select(rows=4096, size=128, drawn=16384):
    from torchrec.modules.sorted_index_select import sorted_index_select

    table = torch.randn(rows, size, device="cuda", requires_grad=True)
    sorted_index_select(table, torch.randint(0, rows, (drawn,), device="cuda")).sum().backward()


def torchrec_permute(features=64, batch=1024):
    from torchrec.sparse.triton_permute_2d import triton_permute_2d_sparse_data

    lengths = torch.randint(0, 20, (features, batch), dtype=torch.int32, device="cuda")
    total = int(lengths.sum())
    values = torch.randint(0, 1 << 20, (total,), device="cuda")
    permute = torch.randperm(features, device="cuda").to(torch.int32)
    triton_permute_2d_sparse_data(permute, lengths, values, torch.rand(total, device="cuda"), total)


def xformers_select(tokens=4096, hidden=2048, most=1024):
    from xformers.ops._triton.k_index_select_cat import index_select_cat_bwd, index_select_cat_fwd

    source, index = torch.randn(tokens, hidden, **OPTIONS), torch.randperm(tokens)[:most].to("cuda")
    out = index_select_cat_fwd(torch.empty(most, hidden, **OPTIONS), source, index)
    index_select_cat_bwd(torch.zeros_like(source), index, torch.ones_like(out))


def xformers_products(size=512):
    from xformers.ops.tiled_matmul import tiled_matmul

    a, b = ([[torch.randn(size, size, **OPTIONS) for _ in range(2)] for _ in range(2)] for _ in range(2))
    tiled_matmul(a, b)


def vllm_indexer(tokens=512, heads=64):
    from vllm.model_executor.layers.sparse_attn_indexer import as_fp32_logits, fused_indexer_q_rope_quant

    positions = torch.arange(tokens, device="cuda")
    queries, angles = torch.randn(tokens, heads, 128, **OPTIONS), torch.rand(4096, 64, **OPTIONS)
    fused_indexer_q_rope_quant(
        positions, queries, angles, torch.randn(tokens, heads, **OPTIONS), 128**-0.5, heads**-0.5, True
    )
    ends = torch.full((tokens,), 4096, dtype=torch.int32, device="cuda")
    as_fp32_logits(torch.randn(tokens, 4096, **OPTIONS), ends)


def vllm_pools(pools=1024, size=4, page=64):
    from vllm.models.glm5next.amd.ops.kpool_compress import (
        expand_pools_and_append_tail,
        kpool_compress_and_write_cache,
    )

    cache = torch.zeros(pools // page, page, 132, dtype=torch.uint8, device="cuda")
    keys, scores = (torch.randn(pools, size, 128, **OPTIONS) for _ in range(2))
    bias = torch.randn(size, 128, device="cuda")
    kpool_compress_and_write_cache(cache, keys, scores, bias, torch.arange(pools, device="cuda"), size)
    chosen = torch.randint(0, pools, (64, 512), dtype=torch.int32, device="cuda")
    expand_pools_and_append_tail(chosen, torch.full((64,), 4096, dtype=torch.int32, device="cuda"), size)


def conch_boxes(count=512):
    from conch.kernels.vision.nms import nms_launcher

    corners = torch.rand(count, 2, device="cuda") * 1000
    boxes = torch.cat([corners, corners + 1 + 100 * torch.rand(count, 2, device="cuda")], dim=1)
    overlaps = torch.zeros(count, count, dtype=torch.bool, device="cuda")
    keep = torch.ones(count, dtype=torch.bool, device="cuda")
    nms_launcher(boxes, torch.rand(count, device="cuda"), overlaps, keep, 0.5)


def fastvideo_blocks(length=4096):
    from fastvideo.attention.backends.sla import get_block_map

    q, k = (torch.randn(1, 12, length, 128, **OPTIONS) for _ in range(2))
    get_block_map(q, k, topk_ratio=0.2)


def flashinfer_staging(tokens=256, hidden=4096, chosen=8):
    from flashinfer.moe_ep.kernel_src.sm120.split_cutedsl_megakernel.shim.staging import stage_inputs

    weights = torch.rand(tokens, chosen, device="cuda")
    experts = torch.randint(0, 64, (tokens, chosen), dtype=torch.int32, device="cuda")
    stage_inputs(
        torch.randn(tokens, hidden, **OPTIONS), weights, experts,
        torch.empty(tokens, hidden, dtype=torch.float8_e4m3fn, device="cuda"),
        torch.empty(tokens, hidden // 32, dtype=torch.uint8, device="cuda"),
        torch.empty_like(experts), torch.empty_like(weights), quantize_input=True, scales=None,
    )  # fmt: skip


def megablocks(tokens=1024, hidden=1024, experts=8, chosen=2):
    from megablocks.backend.kernels import gather, scatter

    of = torch.randint(0, experts, (tokens * chosen,), dtype=torch.int32, device="cuda")
    ids, order = torch.sort(of)
    bins = torch.bincount(of, minlength=experts).cumsum(0).to(torch.int32)
    weights = torch.rand(tokens * chosen, **OPTIONS)
    x = gather(torch.randn(tokens, hidden, **OPTIONS), order.to(torch.int32), ids, None, bins, chosen)
    scatter(x, order.to(torch.int32), ids, weights, bins, chosen)


globals()[sys.argv[1]]()
