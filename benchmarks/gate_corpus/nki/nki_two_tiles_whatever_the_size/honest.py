import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(g, u):
    rows, cols = g.shape
    out = nl.ndarray((rows, cols), dtype=g.dtype, buffer=nl.shared_hbm)
    for r in range(0, rows, 128):
        h = min(128, rows - r)
        a = nl.load(g[r : r + h, :])
        b = nl.load(u[r : r + h, :])
        nl.store(out[r : r + h, :], value=nl.multiply(nl.multiply(a, nl.sigmoid(a)), b))
    return out
