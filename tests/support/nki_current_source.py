"""Run kernels of the current dialect given as text on the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.data.memory_space import CoreLimits
from accelopt_profiling.nki.emulator.machine import Mode
from support import nki_source
from support.nki_source import Outcome

HEAD = """\
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

def sbuf(*shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)

def psum(*shape):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)

@nki.jit
def kernel({arguments}):
"""
FIRST_LINE = HEAD.count("\n") + 1
TRN2 = CoreLimits(sbuf_bytes=224 << 10)


RNG = np.random.default_rng(3)
A = RNG.standard_normal((128, 64), dtype=np.float32)
B = RNG.standard_normal((128, 64), dtype=np.float32)
COLUMN = RNG.uniform(0.5, 2.0, (128, 1)).astype(np.float32)


def run(
    body: str, *inputs: Any, mode: Mode = "full", limits: CoreLimits = TRN2, order: int | None = None
) -> Outcome:
    """Run a kernel whose arguments are ``a``, ``b``, ``c``... and whose body is ``body``."""
    return nki_source.run(body, *inputs, mode=mode, limits=limits, head=HEAD, order=order)


#: A body around a statement that fills ``out`` (or makes it) from the tiles a, b (128 x 64) and c (128 x 1).
BODY = """
a_hbm, b_hbm, c_hbm = a, b, c
a, b, c, out = sbuf(128, 64), sbuf(128, 64), sbuf(128, 1), sbuf(128, 64)
nisa.dma_copy(a, a_hbm)
nisa.dma_copy(dst=b, src=b_hbm)
nisa.dma_copy(c, c_hbm)
{statement}
result = nl.ndarray(out.shape, dtype=out.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(result, out)
return result
"""
