"""The functions of CUDA's device library on NumPy arrays."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import triton
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.triton.interpreter.libdevice import FUNCTIONS, function_name

pytestmark = pytest.mark.triton


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("__nv_tanhf", "tanh"),
        ("__nv_tanh", "tanh"),
        ("__nv_fast_expf", "fast_expf"),
        ("__ocml_erf_f32", "erf"),
        ("__nv_rsqrt_rn", "rsqrt_rn"),
        ("__nv_isnanf", "isnan"),
        ("__nv_fadd_rn", "add_rn"),
        ("__nv_dsqrt_ru", "sqrt_ru"),
        ("__nv_fmaf_rz", "fma_rz"),
        ("__nv_powif", "powi"),
    ],
)
def test_device_library_symbols(symbol, name):
    assert function_name(symbol) == name
    assert name in FUNCTIONS


#: Integer tricks and Bessel functions of any order: no kernel was seen that uses them.
NOT_KNOWN = {
    "brev", "brevll", "byte_perm", "double2hiint", "double2loint", "erfcinv", "erfcinvf", "hadd", "hiloint2double",
    "jn", "jnf", "mul24", "rcp64h", "rhadd", "sad", "uhadd", "umul24", "urhadd", "usad", "yn", "ynf",
}  # fmt: skip


def test_every_function_of_cudas_library_is_known_or_said_not_to_be():
    symbols = set(re.findall(r'"(__nv_\w+)"', inspect.getsource(triton.language.extra.cuda.libdevice)))
    assert len(symbols) > 300
    assert {function_name(s) for s in symbols} - set(FUNCTIONS) == NOT_KNOWN


X = np.array([0.1, 1.5, -2.5, 3.0, 1e-3], np.float32)
N = np.array([0, 1, 40, -1, 1 << 30], np.int32)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("powi", (X, np.full(5, 3, np.int32)), X**3),
        ("popc", (N,), [0, 1, 2, 32, 1]),
        ("clz", (N,), [32, 31, 26, 0, 1]),
        ("ffs", (N,), [0, 1, 4, 1, 31]),
        ("float2int_rn", (X,), [0, 2, -2, 3, 0]),
        ("float2int_rd", (X,), [0, 1, -3, 3, 0]),
        ("float2int_ru", (X,), [1, 2, -2, 3, 1]),
        ("float2int_rz", (X,), [0, 1, -2, 3, 0]),
        ("llround", (X,), [0, 2, -3, 3, 0]),
        ("remainder", (X, np.full(5, 2, np.float32)), [np.float32(0.1), -0.5, -0.5, -1.0, np.float32(1e-3)]),
        ("ilogb", (X,), [-4, 0, 1, 1, -10]),
        ("umulhi", (np.full(2, 1 << 31, np.uint32), np.full(2, 6, np.uint32)), [3, 3]),
        ("float_as_int", (X[3:4],), [0x40400000]),
    ],
)
def test_device_library_functions(name, arguments, expected):
    assert np.array_equal(FUNCTIONS[name](*arguments), expected)


@given(st.floats(2**-10, 2**10, width=32), st.floats(2**-10, 2**10, width=32))
def test_rounding_modes_enclose_the_exact_result(x, y):
    a, b = np.array([x], np.float32), np.array([y], np.float32)
    for name, exact in (("add", float(x) + float(y)), ("mul", float(x) * float(y))):
        down, near, up, cut = (float(FUNCTIONS[f"{name}_{m}"](a, b)[0]) for m in ("rd", "rn", "ru", "rz"))
        assert down <= exact <= up
        assert near in (down, up)
        assert cut == down
        assert up == down or up == float(np.nextafter(np.float32(down), np.float32(np.inf)))
