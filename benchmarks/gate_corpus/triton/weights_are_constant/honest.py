import torch
import triton
import triton.language as tl


@triton.jit
def bag_kernel(table_ptr, index_ptr, out_ptr, bag, dim, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < dim
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(bag):
        where = tl.load(index_ptr + row * bag + i)
        total += tl.load(table_ptr + where * dim + lanes, mask=mask, other=0.0)
    tl.store(out_ptr + row * dim + lanes, total, mask=mask)


def embedding_bag(table, index, out=None):
    rows, bag = index.shape
    dim = table.shape[1]
    index = index.to(torch.int32).contiguous()
    if out is None:
        out = torch.empty((rows, dim), device=table.device, dtype=table.dtype)
    bag_kernel[(rows,)](table, index, out, bag, dim, BLOCK=triton.next_power_of_2(dim))
    return out
