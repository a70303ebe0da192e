"""A kernel that memory tests remember."""

SLOW = """
import neuronxcc.nki.language as nl
from neuronxcc import nki

@nki.jit
def silu(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(x.shape[0] // 128):
        tile = nl.load(x[i * 128:(i + 1) * 128])
        nl.store(out[i * 128:(i + 1) * 128], nl.multiply(tile, nl.sigmoid(tile)))
    return out
"""
