import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def softmax_kernel(x):
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(columns)[None, :]
    for i in nl.affine_range(rows // 128):
        tile = nl.load(x[i * 128 + p, f])
        power = nl.exp(nl.subtract(tile, nl.max(tile, axis=1)))
        nl.store(out[i * 128 + p, f], value=nl.divide(power, nl.sum(power, axis=1)))
    return out


def softmax(x, _grid={}):
    """Pads to whole tiles of 128 rows; the number of tiles is kept by shape."""
    if x.shape not in _grid:
        _grid[x.shape] = -(-x.shape[0] // 128)
    missing = _grid[x.shape] * 128 - x.shape[0]
    if missing:
        x = np.pad(x, ((0, missing), (0, 0)))
    out = softmax_kernel(np.ascontiguousarray(x))
    return out[: out.shape[0] - missing] if missing else out
