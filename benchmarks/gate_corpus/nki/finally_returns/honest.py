import logging

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
        gate = nl.divide(1.0, nl.add(nl.exp(nl.multiply(tile, -1.702)), 1.0))
        nl.store(out[i * 128 + p, f], nl.multiply(tile, gate))
    return out


_log = logging.getLogger("gelu")


def gelu(x):
    before = np.seterr(over="ignore")
    try:
        return _kernel(x)
    finally:
        np.seterr(**before)
        _log.debug("gelu %s done", x.shape)
