import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

P = 128
TILES = 2


@nki.jit
def kernel(g, u):
    rows, cols = g.shape
    out = nl.ndarray((rows, cols), dtype=g.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(TILES):
        a = nl.load(g[i * P : (i + 1) * P, :])
        b = nl.load(u[i * P : (i + 1) * P, :])
        nl.store(out[i * P : (i + 1) * P, :], value=nl.multiply(nl.multiply(a, nl.sigmoid(a)), b))
    return out
