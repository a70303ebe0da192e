import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def product(a, b):
    k, m = a.shape
    _, n = b.shape
    out = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    fm = nl.arange(m)[None, :]
    fn = nl.arange(n)[None, :]
    psum = nl.zeros((nl.par_dim(128), n), dtype=nl.float32, buffer=nl.psum)
    for t in nl.affine_range(k // 128):
        left = nl.load(a[t * 128 + p, fm])
        right = nl.load(b[t * 128 + p, fn])
        psum[...] = nisa.nc_matmul(left, right)
    nl.store(out, value=nl.copy(psum))
    return out
