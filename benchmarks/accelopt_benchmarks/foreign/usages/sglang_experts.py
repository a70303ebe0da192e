"""The product and the helpers of sglang's mixture of experts: tokens sorted by expert, gate and up in one product."""

import torch
import triton.language as tl
from sglang.kernels.ops.moe.fused_moe_triton_kernels import (
    act_and_mul_triton,
    fused_append_shared_experts,
    invoke_fused_moe_kernel,
    moe_sum_reduce_triton,
)

CONFIGURATION = {
    "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 8, "num_warps": 4, "num_stages": 4,
}  # fmt: skip


def sorted_by_expert(chosen, experts, block):
    """Return slots padded to whole blocks of one expert, the expert of each block, and the number of slots."""
    slots, owners = [], []
    for expert in range(experts):
        own = (chosen.flatten() == expert).nonzero().flatten().to(torch.int32)
        padding = -len(own) % block
        slots.append(torch.cat([own, own.new_full((padding,), chosen.numel())]))
        owners += [expert] * (len(slots[-1]) // block)
    ids = torch.cat(slots)
    return ids, torch.tensor(owners, dtype=torch.int32, device="cuda"), ids.new_tensor([len(ids)])


def main(tokens=512, hidden=2048, inner=1408, experts=16, top=4):
    options = {"device": "cuda", "dtype": torch.bfloat16}
    x = torch.randn(tokens, hidden, **options)
    weights, chosen = torch.randn(tokens, experts, device="cuda").softmax(-1).topk(top)
    chosen = chosen.to(torch.int32)
    ids, owners, count = sorted_by_expert(chosen, experts, CONFIGURATION["BLOCK_SIZE_M"])
    gate_up = torch.randn(experts, 2 * inner, hidden, **options)
    out = torch.empty(tokens, top, 2 * inner, **options)
    invoke_fused_moe_kernel(
        x, gate_up, None, out, None, None, None, weights, chosen, ids, owners, count, False, top, CONFIGURATION,
        tl.bfloat16, False, False, False, False, False,
    )  # fmt: skip
    activated = torch.empty(tokens * top, inner, **options)
    act_and_mul_triton(out.view(-1, 2 * inner), activated, CONFIGURATION, chosen, owners)
    moe_sum_reduce_triton(torch.randn(tokens, top, hidden, **options), torch.empty_like(x), 1.0)
    fused_append_shared_experts(chosen, weights, 1, 1.0, N=experts)


main()
