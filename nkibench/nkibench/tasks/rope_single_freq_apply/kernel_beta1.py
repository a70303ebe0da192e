# accelopt: problem=reference.py
"""Rotary position embedding in tiles of half the features and 512 columns."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

COLUMNS = 512


@nki.jit
def kernel(x, freqs_cos, freqs_sin):
    """``x[D, S]``, ``freqs_cos`` and ``freqs_sin`` ``[D/2, S]``; D at most 256 and even, S a multiple of 512.

    The halves are loaded as tiles of their own, since both operands of an instruction start at the same partition.
    """
    features, length = x.shape
    half = features // 2
    out = nl.ndarray((features, length), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(half)[:, None]
    columns = nl.arange(COLUMNS)[None, :]
    for i in nl.affine_range(length // COLUMNS):
        upper = nl.load(x[rows, i * COLUMNS + columns])
        lower = nl.load(x[half + rows, i * COLUMNS + columns])
        cos = nl.load(freqs_cos[rows, i * COLUMNS + columns])
        sin = nl.load(freqs_sin[rows, i * COLUMNS + columns])

        upper_cos = nl.multiply(upper, cos)
        lower_sin = nl.multiply(lower, sin)
        upper_out = nl.subtract(upper_cos, lower_sin)
        nl.store(out[rows, i * COLUMNS + columns], value=upper_out)

        upper_sin = nl.multiply(upper, sin)
        lower_cos = nl.multiply(lower, cos)
        lower_out = nl.add(upper_sin, lower_cos)
        nl.store(out[half + rows, i * COLUMNS + columns], value=lower_out)
    return out
