"""Attention layers of several packages, forward and where there is one backward; the argument names the package."""

import sys

import torch

OPTIONS = {"device": "cuda", "dtype": torch.bfloat16}


def heads(batch=2, count=16, length=2048, size=64, of=3, gradients=True):
    return [torch.randn(batch, count, length, size, **OPTIONS).requires_grad_(gradients) for _ in range(of)]


def lightning_attn():
    from lightning_attn.ops.triton.lightning_attn2_no_decay import lightning_attn2_no_decay

    lightning_attn2_no_decay(*heads()).sum().backward()


def mlstm_lightning():
    from mlstm_kernels.baselines.lightning_attention.lightning_attn2 import lightning_attn2

    slopes = torch.rand(16, 1, 1, device="cuda", dtype=torch.float32)
    lightning_attn2(*heads(), slopes).sum().backward()


def mlstm_gla():
    from mlstm_kernels.baselines.flash_linear_attention.gla.recurrent_fuse import fused_recurrent_gla

    gates = torch.nn.functional.logsigmoid(torch.randn(2, 16, 512, 64, device="cuda")).requires_grad_()
    fused_recurrent_gla(*heads(length=512), gk=gates)[0].sum().backward()


def sageattention(batch=4, count=16, length=1024, size=64):
    from sageattention.attn_qk_int8_block_varlen import forward

    tokens = batch * length
    q, k = (
        torch.randint(-127, 127, (tokens, count, size), dtype=torch.int8, device="cuda") for _ in range(2)
    )
    v = torch.randn(tokens, count, size, device="cuda", dtype=torch.float16)
    begins = torch.arange(0, tokens + 1, length, dtype=torch.int32, device="cuda")
    blocks_q = torch.arange(0, batch * length // 128 + 1, length // 128, dtype=torch.int32, device="cuda")
    blocks_k = torch.arange(0, batch * length // 64 + 1, length // 64, dtype=torch.int32, device="cuda")
    scales_q = torch.rand(int(blocks_q[-1]) * count, 1, device="cuda") / 100
    scales_k = torch.rand(int(blocks_k[-1]) * count, 1, device="cuda") / 100
    forward(q, k, v, begins, begins, length, scales_q, scales_k, blocks_q, blocks_k)


def fbgemm(batch=8, longest=256, size=64):
    from fbgemm_gpu.sll.triton.triton_jagged_dense_flash_attention import JaggedDenseFlashAttention

    lengths = torch.randint(longest // 2, longest, (batch,))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to("cuda")
    rows = int(lengths.sum())
    q, v = (torch.randn(rows, size, **OPTIONS).requires_grad_() for _ in range(2))
    k = torch.randn(batch, size, longest, **OPTIONS).requires_grad_()
    bias = torch.randn(batch, longest, longest, **OPTIONS).requires_grad_()
    JaggedDenseFlashAttention.apply(q, k, v, bias, offsets, longest).sum().backward()


def exllamav3(batch=2, length=1024, count=8, size=64):
    from exllamav3.vendor.fla.kda_chunk_intra import chunk_kda_fwd_intra

    q, k, v = (torch.randn(batch, length, count, size, **OPTIONS) for _ in range(3))
    gates = -torch.rand(batch, length, count, size, device="cuda").cumsum(1) / 64
    chunk_kda_fwd_intra(q, k, v, gates, torch.rand(batch, length, count, device="cuda"), size**-0.5)


def fastvideo(blocks=16, most=4):
    sys.path.insert(0, "fastvideo-kernel/python")  # where its sources lie, below the working folder
    from fastvideo_kernel.triton_kernels.block_sparse_attn_triton import triton_block_sparse_attn_forward

    q, k, v = heads(batch=1, length=64 * blocks, gradients=False)
    chosen = (
        torch.rand(1, 16, blocks, blocks, device="cuda").argsort(-1)[..., :most].to(torch.int32).contiguous()
    )
    number = torch.full((1, 16, blocks), most, dtype=torch.int32, device="cuda")
    sizes = torch.full((blocks,), 64, dtype=torch.int32, device="cuda")
    triton_block_sparse_attn_forward(q, k, v, chosen, number, sizes)


def axolotl(batch=1, count=16, length=512, most=128):
    from axolotl.integrations.kernels.libs.glm_dsa.attention_mla_absorb import DQK, mla_absorb_attn

    q = torch.randn(batch, count, length, DQK, **OPTIONS).requires_grad_()
    keys = torch.randn(batch, length, DQK, **OPTIONS).requires_grad_()
    chosen = torch.randint(0, length, (batch, length, most), dtype=torch.int32, device="cuda")
    mla_absorb_attn(q, keys, chosen, DQK**-0.5).sum().backward()


def fastvideo_sla(length=1024, most=4):
    sys.path.insert(0, "fastvideo-kernel/python")  # where its sources lie, below the working folder
    from fastvideo_kernel.triton_kernels.sla_triton import _attention

    blocks = length // 64
    chosen = torch.rand(1, 8, blocks, blocks, device="cuda").argsort(-1)[..., :most].contiguous()
    mask = torch.zeros(1, 8, blocks, blocks, dtype=torch.int8, device="cuda").scatter_(-1, chosen, 1)
    _attention.apply(*heads(batch=1, count=8, length=length), mask, chosen, most, 64, 64).sum().backward()


def lmdeploy(length=512, count=8, shared=2, size=128):
    from lmdeploy.pytorch.kernels.cuda.flashattention import flash_attn_varlen_func

    q = torch.randn(2 * length, count, size, **OPTIONS)
    k, v = (torch.randn(shared, 2 * length, size, **OPTIONS) for _ in range(2))
    starts = torch.tensor([0, length, 2 * length], dtype=torch.int32, device="cuda")
    flash_attn_varlen_func(q, k, v, starts, starts, max_seqlen_q=length, max_seqlen_k=length, causal=True)


def lmdeploy_index(batch=16, count=64, size=128, length=2048, page=64):
    from lmdeploy.pytorch.kernels.cuda.ds_index import fp8_index

    pages = batch * length // page
    q = torch.randn(batch, count, size, **OPTIONS).to(torch.float8_e4m3fn)
    keys = torch.randn(pages, page, size, **OPTIONS).to(torch.float8_e4m3fn)
    starts = torch.arange(batch + 1, dtype=torch.int32, device="cuda")
    lengths = torch.full((batch,), length, dtype=torch.int32, device="cuda")
    table = torch.arange(pages, dtype=torch.int32, device="cuda").view(batch, -1)
    scales, others = torch.rand(batch, count, device="cuda"), torch.rand(pages, page, device="cuda")
    fp8_index(q, scales, keys, others, starts, lengths, table, max_k_seqlen=length)


def mlstm_tutorial():
    from mlstm_kernels.baselines.flash_attention.triton_tutorial import attention_causal

    q, k, v = (t.detach().half().requires_grad_() for t in heads(batch=1, count=4, length=1024))
    attention_causal(q, k, v, 0.125).sum().backward()


def modelopt(batch=2, length=512, count=8, size=64):
    from modelopt.torch.kernels.common.attention.triton_fa import attention

    q, k, v = (torch.randn(batch * length, count, size, **OPTIONS).requires_grad_() for _ in range(3))
    starts = torch.arange(0, batch * length, length, dtype=torch.int32, device="cuda")
    lengths = torch.full((batch,), length, dtype=torch.int32, device="cuda")
    attention(q, k, v, starts, lengths, length).sum().backward()


def sageattention_dense(batch=2, count=16, length=1024, size=64):
    from sageattention.attn_qk_int8_per_block import forward

    shape = (batch, count, length, size)
    q, k = (torch.randint(-127, 127, shape, dtype=torch.int8, device="cuda") for _ in range(2))
    scales_q = torch.rand(batch, count, length // 128, 1, device="cuda") / 100
    scales_k = torch.rand(batch, count, length // 64, 1, device="cuda") / 100
    forward(q, k, torch.randn(shape, device="cuda", dtype=torch.float16), scales_q, scales_k)


def fbgemm_jagged(batch=64, longest=256, size=128):
    from fbgemm_gpu.sll.triton.triton_dense_jagged_cat_jagged_out import dense_jagged_cat_jagged_out

    offsets = torch.arange(0, batch * longest + 1, longest, device="cuda")
    values = torch.randint(0, 1000, (batch * longest,), device="cuda")
    dense_jagged_cat_jagged_out(torch.randint(0, 1000, (batch,), device="cuda"), values, offsets, longest)


def fbgemm_jagged_to_dense(batch=64, longest=256, size=128):
    from fbgemm_gpu.triton.jagged.triton_jagged_tensor_ops import jagged_to_dense

    offsets = torch.arange(0, batch * longest + 1, longest, device="cuda")
    values = torch.randn(batch * longest, size, device="cuda").requires_grad_()
    jagged_to_dense(values, [offsets], [longest]).sum().backward()


globals()[sys.argv[1]]()
