import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def add_scaled_kernel(a, b):
    rows, columns = a.shape
    out = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(columns)[None, :]
    for i in nl.affine_range(rows // 128):
        left = nl.load(a[i * 128 + p, f])
        right = nl.load(b[i * 128 + p, f])
        nl.store(out[i * 128 + p, f], value=nl.add(left, nl.multiply(right, 0.5)))
    return out


def add_scaled(a, b):
    room = np.empty(a.shape, np.float32)
    np.copyto(room, add_scaled_kernel(a, b))
    return room
