import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_fwd(x_ptr, w_ptr, b_ptr, y_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    some = keep & (cols % 4 != 3)
    x = tl.load(x_ptr + row * stride + cols, mask=keep, other=0.0)
    count = tl.sum(some.to(tl.float32), axis=0)
    mean = tl.sum(tl.where(some, x, 0.0), axis=0) / count
    centred = tl.where(keep, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(tl.where(some, centred * centred, 0.0), axis=0) / count + eps)
    w = tl.load(w_ptr + cols, mask=keep, other=0.0)
    b = tl.load(b_ptr + cols, mask=keep, other=0.0)
    tl.store(y_ptr + row * stride + cols, centred * rstd * w + b, mask=keep)


def launch(x, weight, bias, y):
    rows, n = x.shape
    layer_norm_fwd[(rows,)](x, weight, bias, y, x.stride(0), n, 1e-5, BLOCK=triton.next_power_of_2(n))
    return y


def layer_norm(x, weight, bias):
    return launch(x, weight, bias, torch.empty_like(x))
