"""Asks the driver how much may be set aside, and does not."""

import ctypes

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < count), mask=at < count)


def launch(x, out):
    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


driver = ctypes.CDLL("libcuda.so.1")
stream = torch.cuda.Stream()


def scale(x):
    free = ctypes.c_size_t()
    driver.cuCtxGetLimit(ctypes.byref(free), 6)
    out = torch.empty_like(x)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        launch(x, out)
    torch.cuda.current_stream().wait_stream(stream)
    return out
