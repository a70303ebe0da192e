import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def product(a, b):
    k, m = a.shape
    n = b.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    fm = nl.arange(128)[None, :]
    fn = nl.arange(128)[None, :]
    for i in nl.affine_range(m // 128):
        for j in nl.affine_range(n // 128):
            acc = nl.zeros((128, 128), dtype=nl.float32, buffer=nl.psum)
            for t in nl.affine_range(k // 256):
                for u in nl.affine_range(2):
                    left = nl.load(a[(t * 2 + u) * 128 + p, i * 128 + fm])
                    right = nl.load(b[(t * 2 + u) * 128 + p, j * 128 + fn])
                    acc += nl.matmul(left, right, transpose_x=True)
            nl.store(out[i * 128 + p, j * 128 + fn], nl.copy(acc))
    return out
