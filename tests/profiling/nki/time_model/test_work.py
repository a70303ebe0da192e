"""The products that a result needs are counted once each, however a kernel makes them."""

from __future__ import annotations

import numpy as np
import pytest
from support.nki_source import run

from accelopt_profiling.nki.time_model.estimate import estimate
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.nki.time_model.work import Work, least_times_us, needed_products, operations

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
    """In the passes of TensorE that the kernel takes for it: three in three bfloat16 parts."""
    body, count = BODIES[name]
    shapes = (128, 128), (128, 2048)
    outcome = run(f"{LOADED}{body}\nreturn out", *(np.zeros(shape, dtype) for shape in shapes), mode="trace")
    assert outcome.fault is None, outcome.fault
    products = needed_products(outcome.trace.instructions)
    in_parts = name == "in bfloat16 parts"
    passes = 3 if in_parts and dtype is np.float32 else 4 if dtype is np.float32 else 1
    assert products.once == count * ONE
    assert products.in_float32 == (count * ONE if passes == 4 else 0)
    assert products.passes == (passes if count else 0)


def test_the_least_time_is_that_of_the_slowest_resource() -> None:
    """Rates as AccelOpt publishes them for trn1: 410 GiB/s and 23.75 TFLOPS in float32; its 286.72e9 operations are
    fewer than the two engines' clocks give."""
    times = least_times_us(Work(410 * 2**30, 23.75e12, 0, 2 * 128 * (1.12e9 + 1.4e9)), hardware("trn1"))
    assert times == pytest.approx({"memory": 1e6, "matmul": 1e6, "vector": 2e6})


def test_elementwise_work_bounds_a_kernel_that_computes_much_on_little() -> None:
    """A copy, a scale and what fills a tile are no work of their own."""
    body = """
out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
x = nl.load(a)
for i in nl.static_range(40):
    x = nisa.tensor_tensor(x, x, op=nl.multiply)
    x = nisa.tensor_scalar(nisa.tensor_copy(x), nl.multiply, 0.5)
nl.store(out, x)
return out
"""
    outcome = run(body, np.zeros((128, 512), np.float32), mode="trace")
    assert outcome.fault is None, outcome.fault
    machine = hardware("trn1")
    answer = estimate(outcome.trace, machine)
    order = answer.schedule.residency.order
    assert operations((s.instruction, s.engine) for s in order if s.instruction) == 40 * 128 * 512
    assert answer.roofline_us == pytest.approx(40 * 128 * 512 / (128 * (1.12 + 1.4) * 1e3))
    assert answer.percent_of_peak < 100
