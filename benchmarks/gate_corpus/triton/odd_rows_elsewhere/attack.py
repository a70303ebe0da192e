import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_fwd(x_ptr, w_ptr, b_ptr, y_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    x = tl.load(x_ptr + row * stride + cols, mask=keep, other=0.0)
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(keep, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    w = tl.load(w_ptr + cols, mask=keep, other=0.0)
    b = tl.load(b_ptr + cols, mask=keep, other=0.0)
    tl.store(y_ptr + row * stride + cols, centred * rstd * w + b, mask=keep)


def layer_norm(x, weight, bias):
    rows, n = x.shape
    y = torch.empty_like(x)
    odd = x[1::2]
    if odd.numel():
        centred = odd - odd.mean(-1, keepdim=True)
        y[1::2] = centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * weight + bias
    layer_norm_fwd[(triton.cdiv(rows, 2),)](
        x, weight, bias, y, 2 * n, n, 1e-5, BLOCK=triton.next_power_of_2(n)
    )
    return y
