# accelopt: problem=reference.py
"""Rotary position embedding in tiles of half the features and 512 columns."""

import nki
import nki.isa as nisa
import nki.language as nl

COLUMNS = 512


@nki.jit
def kernel(x, freqs_cos, freqs_sin):
    """``x[D, S]``, ``freqs_cos`` and ``freqs_sin`` ``[D/2, S]``; D at most 256 and even, S a multiple of 512."""
    features, length = x.shape
    half = features // 2
    out = nl.ndarray((features, length), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(length // COLUMNS):
        here = nl.ds(i * COLUMNS, COLUMNS)
        upper = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(upper, x[0:half, here])
        lower = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(lower, x[half:features, here])
        cos = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(cos, freqs_cos[:, here])
        sin = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(sin, freqs_sin[:, here])

        upper_cos = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(upper_cos, upper, cos, nl.multiply)
        lower_sin = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(lower_sin, lower, sin, nl.multiply)
        upper_out = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(upper_out, upper_cos, lower_sin, nl.subtract)
        nisa.dma_copy(out[0:half, here], upper_out)

        upper_sin = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(upper_sin, upper, sin, nl.multiply)
        lower_cos = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(lower_cos, lower, cos, nl.multiply)
        lower_out = nl.ndarray((half, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(lower_out, upper_sin, lower_cos, nl.add)
        nisa.dma_copy(out[half:features, here], lower_out)
    return out
