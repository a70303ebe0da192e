"""RMS norm over rows, y = x / sqrt(mean(x^2) + eps) * weight, with the weight fetched anew for every tile."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

ROWS = 128


@nki.jit
def rmsnorm(x, weight, eps):
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(ROWS)[:, None]
    first = nl.arange(1)[:, None]
    columns = nl.arange(n)[None, :]
    for i in nl.affine_range(m // ROWS):
        tile = nl.load(x[i * ROWS + rows, columns])
        squares = nl.multiply(tile, tile)
        total = nl.sum(squares, axis=1)
        mean = nl.multiply(total, 1.0 / n)
        shifted = nl.add(mean, eps)
        root = nl.sqrt(shifted)
        normal = nl.divide(tile, root)
        weight_row = nl.load(weight[first, columns])
        weight_tile = nl.broadcast_to(weight_row, shape=(ROWS, n))
        scaled = nl.multiply(normal, weight_tile)
        nl.store(out[i * ROWS + rows, columns], value=scaled)
    return out


# The problem: what the kernel is profiled with, and what it has to compute.

shapes = [{"m": 128, "n": 512}, {"m": 256, "n": 1024}]
tolerance = 2e-5


def get_inputs(m=4096, n=2048):
    generator = np.random.default_rng(np.random.randint(1 << 31))
    x = generator.standard_normal((m, n), dtype=np.float32)
    weight = generator.standard_normal((1, n), dtype=np.float32)
    return [x, weight, 1e-5]


def reference(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + eps) * weight
