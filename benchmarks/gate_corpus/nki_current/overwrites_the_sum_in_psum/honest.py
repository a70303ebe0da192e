import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def product(a, b):
    k, m = a.shape
    n = b.shape[1]
    out = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.shared_hbm)
    psum = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
    for t in nl.affine_range(k // 128):
        left = nl.ndarray((128, m), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, n), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(left, a[nl.ds(t * 128, 128), :])
        nisa.dma_copy(right, b[nl.ds(t * 128, 128), :])
        nisa.nc_matmul(psum, left, right, accumulate=t > 0)
    done = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(done, psum)
    nisa.dma_copy(out, done)
    return out
