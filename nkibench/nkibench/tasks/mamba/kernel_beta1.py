# accelopt: problem=reference.py
"""The selective scan of Mamba: 128 channels and 512 steps at a time, one state after another."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

CHANNELS, STEPS = 128, 512


@nki.jit
def kernel(delta, u, a, b, c):
    """``delta`` and ``u`` ``[C, M]``, ``a[C, S]``, ``b`` and ``c`` ``[S, M]`` to ``[C, M]``.

    C is a multiple of 128, M of 512. ``last`` carries the states from one piece of the sequence to the next.
    """
    channels, length = delta.shape
    states = a.shape[1]
    out = nl.ndarray((channels, length), dtype=delta.dtype, buffer=nl.shared_hbm)
    rows = nl.arange(CHANNELS)[:, None]
    one = nl.arange(1)[:, None]
    steps = nl.arange(STEPS)[None, :]
    numbers = nl.arange(states)[None, :]
    column = nl.arange(1)[None, :]
    for i in nl.affine_range(channels // CHANNELS):
        a_tile = nl.load(a[i * CHANNELS + rows, numbers])
        last = nl.zeros((CHANNELS, states), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.sequential_range(length // STEPS):
            delta_tile = nl.load(delta[i * CHANNELS + rows, j * STEPS + steps])
            u_tile = nl.load(u[i * CHANNELS + rows, j * STEPS + steps])
            total = nl.zeros((CHANNELS, STEPS), dtype=nl.float32, buffer=nl.sbuf)
            for s in nl.sequential_range(states):
                scaled = nl.multiply(delta_tile, a_tile[rows, s + column])
                decay = nl.exp(scaled)
                b_row = nl.load(b[s + one, j * STEPS + steps])
                b_tile = nl.broadcast_to(b_row, shape=(CHANNELS, STEPS))
                fed = nl.multiply(delta_tile, u_tile)
                entering = nl.multiply(fed, b_tile)
                scan = nisa.tensor_tensor_scan(
                    decay, entering, initial=last[rows, s + column], op0=nl.multiply, op1=nl.add
                )
                last[rows, s + column] = nl.copy(scan[rows, STEPS - 1 + column])
                c_row = nl.load(c[s + one, j * STEPS + steps])
                c_tile = nl.broadcast_to(c_row, shape=(CHANNELS, STEPS))
                weighted = nl.multiply(scan, c_tile)
                total[rows, steps] = nl.add(total, weighted)
            nl.store(out[i * CHANNELS + rows, j * STEPS + steps], value=total)
    return out
