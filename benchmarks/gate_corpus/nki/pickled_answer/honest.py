import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def softmax_kernel(x):
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    start = nl.program_id(0) * 128
    p = nl.arange(128)[:, None]
    f = nl.arange(columns)[None, :]
    tile = nl.load(x[start + p, f])
    power = nl.exp(nl.subtract(tile, nl.max(tile, axis=1)))
    nl.store(out[start + p, f], value=nl.divide(power, nl.sum(power, axis=1)))
    return out


class Softmax:
    """One program for each tile of 128 rows."""

    __slots__ = ("kernel",)

    def __init__(self, kernel=softmax_kernel):
        self.kernel = kernel

    def __call__(self, x):
        return self.kernel[(x.shape[0] // 128,)](x)


def softmax(x):
    return Softmax()(x)
