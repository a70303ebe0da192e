# accelopt: problem=reference.py
"""The selective scan of Mamba: 128 channels and 512 steps at a time, one state after another."""

import nki
import nki.isa as nisa
import nki.language as nl

CHANNELS, STEPS = 128, 512


@nki.jit
def kernel(delta, u, a, b, c):
    """``delta`` and ``u`` ``[C, M]``, ``a[C, S]``, ``b`` and ``c`` ``[S, M]`` to ``[C, M]``.

    C is a multiple of 128, M of 512. ``last`` carries the states from one piece of the sequence to the next.
    """
    channels, length = delta.shape
    states = a.shape[1]
    out = nl.ndarray((channels, length), dtype=delta.dtype, buffer=nl.shared_hbm)
    for i in range(channels // CHANNELS):
        rows = nl.ds(i * CHANNELS, CHANNELS)
        a_tile = nl.ndarray((CHANNELS, states), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(a_tile, a[rows, :])
        last = nl.ndarray((CHANNELS, states), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(last, 0.0)
        for j in range(length // STEPS):
            here = nl.ds(j * STEPS, STEPS)
            delta_tile = nl.ndarray((CHANNELS, STEPS), dtype=delta.dtype, buffer=nl.sbuf)
            nisa.dma_copy(delta_tile, delta[rows, here])
            u_tile = nl.ndarray((CHANNELS, STEPS), dtype=u.dtype, buffer=nl.sbuf)
            nisa.dma_copy(u_tile, u[rows, here])
            total = nl.ndarray((CHANNELS, STEPS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.memset(total, 0.0)
            for s in range(states):
                decay = nl.ndarray((CHANNELS, STEPS), dtype=nl.float32, buffer=nl.sbuf)
                nisa.activation(decay, nl.exp, delta_tile, scale=a_tile[:, s : s + 1])
                b_tile = nl.ndarray((CHANNELS, STEPS), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(b_tile, b[s : s + 1, here].broadcast(0, CHANNELS))
                fed = nl.ndarray((CHANNELS, STEPS), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_tensor(fed, delta_tile, u_tile, nl.multiply)
                entering = nl.ndarray((CHANNELS, STEPS), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_tensor(entering, fed, b_tile, nl.multiply)
                scan = nl.ndarray((CHANNELS, STEPS), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_tensor_scan(scan, decay, entering, last[:, s : s + 1], nl.multiply, nl.add)
                nisa.tensor_copy(last[:, s : s + 1], scan[:, STEPS - 1 : STEPS])
                c_tile = nl.ndarray((CHANNELS, STEPS), dtype=c.dtype, buffer=nl.sbuf)
                nisa.dma_copy(c_tile, c[s : s + 1, here].broadcast(0, CHANNELS))
                weighted = nl.ndarray((CHANNELS, STEPS), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_tensor(weighted, scan, c_tile, nl.multiply)
                nisa.tensor_tensor(total, total, weighted, nl.add)
            nisa.dma_copy(out[rows, here], total)
    return out
