import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def totals(x):
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(n)[None, :]
    acc = nl.zeros((nl.par_dim(128), n), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.sequential_range(m // 128):
        acc += nl.load(x[i * 128 + p, f])
        nl.store(out[i * 128 + p, f], value=acc)
    return out
