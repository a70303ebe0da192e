import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def square_kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(x.shape[1])[None, :]
    for i in nl.affine_range(x.shape[0] // 128):
        nl.store(out[i * 128 + p, f], value=nl.square(nl.load(x[i * 128 + p, f])))
    return out


import weakref
from collections import deque


class Stats:
    """Shapes of the last calls, for tuning."""

    instances = weakref.WeakSet()

    def __init__(self):
        self.shapes = deque(maxlen=16)
        Stats.instances.add(self)


stats = Stats()


def square(x):
    stats.shapes.append(x.shape)
    return square_kernel(x)
