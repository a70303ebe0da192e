import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_fwd(x_ptr, w_ptr, b_ptr, y_ptr, rows, n, eps, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    w = tl.load(w_ptr + cols, mask=keep, other=0.0)
    b = tl.load(b_ptr + cols, mask=keep, other=0.0)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n + cols, mask=keep, other=0.0)
        mean = tl.sum(x, axis=0) / n
        centred = tl.where(keep, x - mean, 0.0)
        rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
        tl.store(y_ptr + row * n + cols, centred * rstd * w + b, mask=keep)


def layer_norm(x, weight, bias):
    rows, n = x.shape
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count
    y = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    layer_norm_fwd[(min(rows, processors),)](
        x, weight, bias, y, rows, n, 1e-5, BLOCK=triton.next_power_of_2(n)
    )
    return y
