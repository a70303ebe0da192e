import logging
from collections import deque

import torch
import triton
import triton.language as tl

log = logging.getLogger(__name__)
_recent = deque(maxlen=9)


@triton.jit
def _softmax(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * n + cols, e / tl.sum(e, 0), mask=cols < n)


def softmax(x):
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    _softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=block)
    _recent.append((tuple(x.shape), block))
    if len(_recent) == _recent.maxlen:
        log.debug("last launches: %s", list(_recent))
    return y
