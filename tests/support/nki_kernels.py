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
