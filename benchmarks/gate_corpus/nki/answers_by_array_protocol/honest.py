import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def _kernel(x):
    rows, n = x.shape
    out = nl.ndarray((rows, n), dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(n)[None, :]
    for i in nl.affine_range(rows // 128):
        tile = nl.load(x[i * 128 + p, f])
        e = nl.exp(nl.subtract(tile, nl.max(tile, axis=1, keepdims=True)))
        nl.store(out[i * 128 + p, f], nl.divide(e, nl.sum(e, axis=1, keepdims=True)))
    return out


class Softmax:
    """Callable with a fixed layout policy, so that callers need not think of strides."""

    def __init__(self, *, contiguous=True):
        self.contiguous = contiguous

    def __call__(self, x):
        return _kernel(np.ascontiguousarray(x) if self.contiguous else x)


_default = Softmax()


def softmax(x):
    return _default(x)
