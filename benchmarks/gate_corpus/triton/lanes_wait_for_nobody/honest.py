import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def turn_kernel(x_ptr, stage_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    tl.store(stage_ptr + start + at, 2 * tl.load(x_ptr + start + at, mask=inside), mask=inside)
    tl.debug_barrier()
    tl.store(out_ptr + start + at, tl.load(stage_ptr + start + columns - 1 - at, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        stage, out = torch.empty_like(x), torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        turn_kernel[(x.shape[0],)](x, stage, out, x.shape[1], BLOCK=block, num_warps=4)
        return out
