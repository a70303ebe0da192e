"""The products that a result needs are counted once each, however a kernel makes them."""

from __future__ import annotations

import numpy as np
import pytest
from support.nki_source import run

from accelopt_profiling.nki.time_model.work import needed_flops

#: The floating-point operations of one product of a 128 x 128 and a 128 x 512 tile.
ONE = 2 * 128 * 128 * 512
LOADED = """
out = nl.ndarray((4, 128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
x, y = nl.load(a), nl.load(b[:, 0:512])
"""
PARTS = """
x_high, y_high = nl.copy(x, dtype=nl.bfloat16), nl.copy(y, dtype=nl.bfloat16)
x_low = nl.copy(nl.subtract(x, x_high), dtype=nl.bfloat16)
y_low = nl.copy(nl.subtract(y, y_high), dtype=nl.bfloat16)
bank = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
bank += nisa.nc_matmul(x_high, y_high)
bank += nisa.nc_matmul(x_low, y_high)
bank += nisa.nc_matmul(x_high, y_low)
nl.store(out[0], nl.copy(bank))
"""
BODIES = {
    "one": ("nl.store(out[0], nl.copy(nisa.nc_matmul(x, y)))", 1),
    "in bfloat16 parts": (PARTS, 1),
    "again, with its operands swapped": (
        """
nl.store(out[0], nl.copy(nisa.nc_matmul(x, y)))
for n in nl.affine_range(4):
    nl.store(out[1, :, n * 128:n * 128 + 128], nl.copy(nisa.nc_matmul(y[:, nl.ds(n * 128, 128)], x)))
""",
        1,
    ),
    "of other parts of a tensor": (
        """
nl.store(out[0], nl.copy(nisa.nc_matmul(x, y)))
nl.store(out[1], nl.copy(nisa.nc_matmul(x, nl.load(b[:, 512:1024]))))
""",
        2,
    ),
    "of products": (
        """
z = nl.copy(nisa.nc_matmul(x, y))
nl.store(out[0], z)
nl.store(out[1], nl.copy(nisa.nc_matmul(x, z)))
""",
        2,
    ),
    "in a loop": (
        """
for n in nl.affine_range(4):
    nl.store(out[n], nl.copy(nisa.nc_matmul(x, nl.load(b[:, n * 512:n * 512 + 512]))))
""",
        4,
    ),
    "with a constant, and a transpose": (
        """
ones = nl.ones((128, 128), nl.float32)
nl.store(out[0], nl.copy(nisa.nc_matmul(ones, y)))
nl.store(out[1, :, 0:128], nl.copy(nl.transpose(x)))
""",
        0,
    ),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_product_counts_once(name: str, dtype: type) -> None:
    """At the rate of what was loaded, whatever it was converted to."""
    body, count = BODIES[name]
    shapes = (128, 128), (128, 2048)
    outcome = run(f"{LOADED}{body}\nreturn out", *(np.zeros(shape, dtype) for shape in shapes), mode="trace")
    assert outcome.fault is None, outcome.fault
    wide, narrow = needed_flops(outcome.trace.instructions)
    assert (wide, narrow) == ((count * ONE, 0) if dtype is np.float32 else (0, count * ONE))
