import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def largest(x):
    m, n = x.shape
    out = nl.ndarray((128, n), dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(n)[None, :]
    acc = nl.ndarray((nl.par_dim(128), n), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(m // 128):
        acc[...] = nl.loop_reduce(nl.load(x[i * 128 + p, f]), op=np.max, loop_indices=[i])
    nl.store(out[p, f], value=acc)
    return out
