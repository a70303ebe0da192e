"""The libdevice functions that kernels call, on NumPy arrays, by their CUDA names without type suffix."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _torch(name: str) -> Callable[[Array], Array]:
    def apply(x: Array) -> Array:
        import torch

        function = getattr(torch.special, name)
        made: Array = function(torch.from_numpy(np.array(x))).detach().cpu().numpy()
        return made

    return apply


def _round_half_away(x: Array) -> Array:
    rounded: Array = np.trunc(x + np.copysign(0.5, x))
    return rounded


def _flag(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *args: function(*args).astype(np.int32)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "fabs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "cospi": lambda x: np.cos(np.pi * x),
    "erf": _torch("erf"), "erfc": _torch("erfc"), "erfinv": _torch("erfinv"), "exp": np.exp, "exp2": np.exp2,
    "exp10": lambda x: np.power(np.asarray(10, x.dtype), x), "expm1": np.expm1, "fast_expf": np.exp,
    "fast_exp10f": lambda x: np.power(np.asarray(10, x.dtype), x), "fast_cosf": np.cos, "fast_sinf": np.sin,
    "fast_tanf": np.tan, "fast_logf": np.log, "fast_log2f": np.log2, "fast_log10f": np.log10, "fast_powf": np.power,
    "fast_dividef": np.divide, "fast_tanhf": np.tanh, "fdim": lambda x, y: np.where(x > y, x - y, 0 * x),
    "floor": np.floor, "fma": lambda x, y, z: x * y + z, "fmod": np.fmod, "hypot": np.hypot,
    "isinf": _flag(np.isinf), "isinfd": _flag(np.isinf), "isnan": _flag(np.isnan), "isnand": _flag(np.isnan),
    "finitef": _flag(np.isfinite), "isfinited": _flag(np.isfinite), "signbit": _flag(np.signbit),
    "signbitf": _flag(np.signbit), "signbitd": _flag(np.signbit), "j0": _torch("bessel_j0"), "j1": _torch("bessel_j1"),
    "ldexp": lambda x, n: np.ldexp(x, n), "lgamma": _torch("gammaln"), "log": np.log, "log10": np.log10,
    "log1p": np.log1p, "log2": np.log2, "max": np.maximum, "min": np.minimum, "mulhi": (
        lambda x, y: ((x.astype(object) * y.astype(object)) >> (8 * x.itemsize)).astype(x.dtype)
    ),
    "nearbyint": np.rint, "nextafter": np.nextafter, "pow": np.power, "rcbrt": lambda x: 1 / np.cbrt(x),
    "rcp_rn": np.reciprocal, "div_rn": np.divide, "div_rz": np.divide, "mul_rn": np.multiply, "add_rn": np.add,
    "sub_rn": np.subtract, "sqrt_rn": np.sqrt, "rhypot": lambda x, y: 1 / np.hypot(x, y), "rint": np.rint,
    "llrint": lambda x: np.rint(x).astype(np.int64), "float2int_rn": lambda x: np.rint(x).astype(np.int32),
    "float2int_rz": lambda x: np.trunc(x).astype(np.int32), "round": _round_half_away,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rsqrt_rn": lambda x: 1 / np.sqrt(x), "saturatef": lambda x: np.clip(x, 0, 1), "sin": np.sin, "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * x), "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "tgamma": (
        lambda x: np.exp(_torch("gammaln")(x))
    ),
    "trunc": np.trunc,
}  # fmt: skip


def function_name(symbol: str) -> str:
    """``__nv_tanhf``, ``__nv_fast_expf`` or ``__ocml_tanh_f32`` as a name of ``FUNCTIONS``."""
    name = re.sub(r"^__(nv|ocml)_", "", symbol)
    name = re.sub(r"_(f16|f32|f64|bf16)$", "", name)
    if name not in FUNCTIONS and name.endswith("f") and name[:-1] in FUNCTIONS:
        name = name[:-1]
    return name
