import nki
import nki.isa as nisa
import nki.language as nl

WIDTH = 128


@nki.jit
def product_kernel(a, b):
    k, m = a.shape
    n = b.shape[1]
    assert k % 128 == 0 and n % WIDTH == 0, "sizes must be multiples of 128"
    out = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.shared_hbm)
    for j in range(n // WIDTH):
        acc = nl.ndarray((m, WIDTH), dtype=nl.float32, buffer=nl.psum)
        for i in range(k // 128):
            left = nl.ndarray((128, m), dtype=a.dtype, buffer=nl.sbuf)
            right = nl.ndarray((128, WIDTH), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(left, a[nl.ds(i * 128, 128), :])
            nisa.dma_copy(right, b[nl.ds(i * 128, 128), nl.ds(j * WIDTH, WIDTH)])
            nisa.nc_matmul(acc, left, right)
        done = nl.ndarray((m, WIDTH), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(done, acc)
        nisa.dma_copy(out[:, nl.ds(j * WIDTH, WIDTH)], done)
    return out


def product(a, b):
    return product_kernel(a, b)
