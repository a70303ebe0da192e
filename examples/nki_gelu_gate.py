"""A gated unit: gelu(x) * gate, with gelu(x) taken as x * sigmoid(1.702 x), one instruction for each operation."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

ROWS, COLUMNS = 128, 128


@nki.jit
def gelu_gate(x, gate):
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(ROWS)[:, None]
    columns = nl.arange(COLUMNS)[None, :]
    for i in nl.affine_range(m // ROWS):
        for j in nl.affine_range(n // COLUMNS):
            x_tile = nl.load(x[i * ROWS + rows, j * COLUMNS + columns])
            gate_tile = nl.load(gate[i * ROWS + rows, j * COLUMNS + columns])
            scaled = nl.multiply(x_tile, -1.702)
            power = nl.exp(scaled)
            denominator = nl.add(power, 1.0)
            gelu = nl.divide(x_tile, denominator)
            gated = nl.multiply(gelu, gate_tile)
            nl.store(out[i * ROWS + rows, j * COLUMNS + columns], value=gated)
    return out


# The problem: what the kernel is profiled with, and what it has to compute.

shapes = [{"m": 128, "n": 1024}, {"m": 256, "n": 2048}]
tolerance = 2e-5


def get_inputs(m=2048, n=4096):
    generator = np.random.default_rng(np.random.randint(1 << 31))
    return [generator.standard_normal((m, n), dtype=np.float32) for _ in range(2)]


def reference(x, gate):
    return x / (1 + np.exp(-1.702 * x)) * gate
