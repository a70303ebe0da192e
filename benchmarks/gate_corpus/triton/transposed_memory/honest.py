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


def launch(x, weight, bias, y):
    rows, n = x.shape
    layer_norm_fwd[(rows,)](x, weight, bias, y, x.stride(0), n, 1e-5, BLOCK=triton.next_power_of_2(n))
    return y


def layer_norm(x, weight, bias):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    return launch(x.view(-1, x.shape[-1]), weight, bias, torch.empty_like(x)).view(x.shape)
