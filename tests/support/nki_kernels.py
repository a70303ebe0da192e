"""Small NKI kernels for commands to work on."""

SILU = '''"""SiLU, column by column tile."""
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

COLUMNS = 128


@nki.jit
def silu(x):
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(128)[:, None]
    columns = nl.arange(COLUMNS)[None, :]
    for i in nl.affine_range(m // 128):
        for j in nl.affine_range(n // COLUMNS):
            tile = nl.load(x[i * 128 + rows, j * COLUMNS + columns])
            shown = nl.multiply(tile, nl.sigmoid(tile))
            nl.store(out[i * 128 + rows, j * COLUMNS + columns], shown)
    return out


def get_inputs():
    return [np.random.default_rng(0).standard_normal((256, 1024)).astype(np.float32)]


def reference(x):
    return x / (1 + np.exp(-x))
'''

#: The same with one constant wrong: it runs, and the result is not SiLU.
WRONG = SILU.replace("nl.sigmoid(tile)", "nl.sigmoid(nl.multiply(tile, 0.9))")

#: Larger tiles: right, and faster.
FASTER = SILU.replace("COLUMNS = 128", "COLUMNS = 512")

_BANKS = """\
import nki, nki.isa as nisa, nki.language as nl
import numpy as np

@nki.jit
def kernel(a):
    out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(x, a)
    sums = []
    for n in range({banks}):
        bank = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(bank, x[:, 0:128], x)
        sums.append(bank)
    {more}
    for bank in sums:
        nisa.tensor_copy(x, bank)
    nisa.dma_copy(out, x)
    return out

def get_inputs():
    return [np.random.standard_normal((128, 512)).astype(np.float32)]

def reference(a):
    return a[:, 0:128].T @ a
"""


def sums_in_banks(banks: int = 8, more: str = "pass") -> str:
    """Return a kernel that holds a product in each of so many PSUM banks, and does ``more`` while all are alive."""
    return _BANKS.format(banks=banks, more=more)


#: SiLU of one tile, by the dotted name of its NKI.
ONE_TILE = """\
import {dotted} as nki
import {dotted}.language as nl
import numpy as np

@nki.jit
def silu(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.multiply(tile, nl.sigmoid(tile)))
    return out

def get_inputs():
    return [np.random.standard_normal((128, 512)).astype(np.float32)]

def reference(x):
    return x / (1 + np.exp(-x))
"""
