"""The libdevice functions that kernels call, on NumPy arrays, by their CUDA names without type suffix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_TOWARD = {"rd": -np.inf, "ru": np.inf, "rz": 0.0}
_ARITHMETIC: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
    "rcp": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x), "fma": lambda x, y, z: x * y + z,
}  # fmt: skip
_TO_INTEGER = {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}
_FLOATS = {"float": np.float32, "double": np.float64}
_INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}


def rounding_functions() -> Iterator[tuple[str, Callable[..., Array]]]:
    """Yield the functions whose names end in a rounding mode (``add_rn``, ``float2int_rd``, ...), with their names."""
    for name, function in _ARITHMETIC.items():
        yield f"{name}_rn", function
        for mode in _TOWARD:
            yield f"{name}_{mode}", _directed(function, mode)
    for a, real in _FLOATS.items():
        for b, whole in _INTEGERS.items():
            for mode, rounded in _TO_INTEGER.items():
                yield f"{a}2{b}_{mode}", lambda x, r=rounded, t=whole: r(x).astype(t)
            for mode in ("rn", *_TOWARD):
                yield f"{b}2{a}_{mode}", lambda x, m=mode, t=real: narrowed(x, t, m)
    for mode in ("rn", *_TOWARD):
        yield f"double2float_{mode}", lambda x, m=mode: narrowed(x, np.float32, m)


def narrowed(exact: Array, to: type[np.floating[Any]], mode: str) -> Array:
    """Round ``exact`` to the neighbouring number of type ``to`` in the direction of ``mode``."""
    near: Array = exact.astype(to)
    if mode == "rn":
        return near
    toward = _TOWARD[mode]
    wide = near.astype(np.longdouble)
    beyond = np.abs(wide) > np.abs(exact) if mode == "rz" else wide > exact if mode == "rd" else wide < exact
    return np.where(beyond, np.nextafter(near, to(toward)), near)


def _directed(function: Callable[..., Array], mode: str) -> Callable[..., Array]:
    def apply(*arrays: Array) -> Array:
        wide = np.longdouble if arrays[0].dtype == np.float64 else np.float64
        return narrowed(function(*(x.astype(wide) for x in arrays)), arrays[0].dtype.type, mode)

    return apply


def _torch(name: str) -> Callable[[Array], Array]:
    def apply(x: Array) -> Array:
        import torch

        function = getattr(torch.special, name)
        result: Array = function(torch.from_numpy(np.array(x))).detach().cpu().numpy()
        return result

    return apply


def _round_half_away(x: Array) -> Array:
    rounded: Array = np.trunc(x + np.copysign(0.5, x))
    return rounded


def _ieee_remainder(x: Array, y: Array) -> Array:
    remainder: Array = (x - np.rint(x.astype(np.float64) / y) * y).astype(x.dtype)
    return remainder


def _norm(*parts: Array) -> Array:
    total: Array = np.sqrt(sum(part * part for part in parts))
    return total


def _bits(x: Array) -> Array:
    """Return the bits of each element, lowest first, as a last axis."""
    x = np.ascontiguousarray(x)
    return np.unpackbits(x.view(np.uint8).reshape(*x.shape, x.itemsize), axis=-1, bitorder="little")


def _leading_zeros(x: Array) -> Array:
    bits = _bits(x)
    highest = bits.shape[-1] - 1 - bits[..., ::-1].argmax(-1)
    count: Array = np.where(bits.any(-1), bits.shape[-1] - 1 - highest, bits.shape[-1]).astype(np.int32)
    return count


def _first_set(x: Array) -> Array:
    bits = _bits(x)
    position: Array = np.where(bits.any(-1), bits.argmax(-1) + 1, 0).astype(np.int32)
    return position


def _flag(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *args: function(*args).astype(np.int32)


def approximate_tanh(x: Array) -> Array:
    """Return the tangent with the relative error that a GPU's instruction may have, 2**-11 (PTX ISA 8.7,
    9.7.3.21)."""
    mantissa, exponent = np.frexp(np.tanh(x))
    rounded: Array = np.ldexp(np.rint(mantissa * 2048) / 2048, exponent).astype(x.dtype)
    return rounded


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "fabs": np.abs, "llabs": np.abs,
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "cospi": lambda x: np.cos(np.pi * x),
    "erf": _torch("erf"), "erfc": _torch("erfc"), "erfinv": _torch("erfinv"), "exp": np.exp, "exp2": np.exp2,
    "exp10": lambda x: np.power(np.asarray(10, x.dtype), x), "expm1": np.expm1, "fast_expf": np.exp,
    "fast_exp10f": lambda x: np.power(np.asarray(10, x.dtype), x), "fast_cosf": np.cos, "fast_sinf": np.sin,
    "fast_tanf": np.tan, "fast_logf": np.log, "fast_log2f": np.log2, "fast_log10f": np.log10, "fast_powf": np.power,
    "fast_dividef": np.divide, "fast_tanhf": approximate_tanh, "fdim": lambda x, y: np.where(x > y, x - y, 0 * x),
    "floor": np.floor, "fma": lambda x, y, z: x * y + z, "fmod": np.fmod, "hypot": np.hypot,
    "isinf": _flag(np.isinf), "isinfd": _flag(np.isinf), "isnan": _flag(np.isnan), "isnand": _flag(np.isnan),
    "finitef": _flag(np.isfinite), "isfinited": _flag(np.isfinite), "signbit": _flag(np.signbit),
    "signbitf": _flag(np.signbit), "signbitd": _flag(np.signbit), "j0": _torch("bessel_j0"), "j1": _torch("bessel_j1"),
    "ldexp": lambda x, n: np.ldexp(x, n), "lgamma": _torch("gammaln"), "log": np.log, "log10": np.log10,
    "log1p": np.log1p, "log2": np.log2, "max": np.maximum, "min": np.minimum, **dict.fromkeys(
        ("mulhi", "umulhi", "mul64hi", "umul64hi"),
        lambda x, y: ((x.astype(object) * y.astype(object)) >> (8 * x.itemsize)).astype(x.dtype),
    ),
    "nearbyint": np.rint, "nextafter": np.nextafter, "pow": np.power, "rcbrt": lambda x: 1 / np.cbrt(x),
    "powi": lambda x, n: np.power(x, n.astype(x.dtype)), "rhypot": lambda x, y: 1 / np.hypot(x, y), "rint": np.rint,
    "llrint": lambda x: np.rint(x).astype(np.int64), "round": _round_half_away,
    "llround": lambda x: _round_half_away(x).astype(np.int64), "remainder": _ieee_remainder,
    "rsqrt": lambda x: 1 / np.sqrt(x), "saturatef": lambda x: np.clip(x, 0, 1), "sin": np.sin, "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * x), "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "tgamma": (
        lambda x: np.exp(_torch("gammaln")(x))
    ),
    "trunc": np.trunc,
    "ilogb": lambda x: (np.frexp(x)[1] - 1).astype(np.int32), "logb": lambda x: (np.frexp(x)[1] - 1).astype(x.dtype),
    "scalbn": lambda x, n: np.ldexp(x, n), "y0": _torch("bessel_y0"), "y1": _torch("bessel_y1"),
    "cyl_bessel_i0": _torch("i0"), "cyl_bessel_i1": _torch("i1"), "erfcx": _torch("erfcx"),
    "normcdf": _torch("ndtr"), "normcdfinv": _torch("ndtri"), "fast_fdividef": np.divide,
    "norm3d": lambda *x: _norm(*x), "norm4d": lambda *x: _norm(*x),
    "rnorm3d": lambda *x: 1 / _norm(*x), "rnorm4d": lambda *x: 1 / _norm(*x),
    "popc": lambda x: _bits(x).sum(-1, dtype=np.int32), "popcll": lambda x: _bits(x).sum(-1, dtype=np.int32),
    "clz": _leading_zeros, "clzll": _leading_zeros, "ffs": _first_set, "ffsll": _first_set,
    "float_as_int": lambda x: x.view(np.int32), "float_as_uint": lambda x: x.view(np.uint32),
    "int_as_float": lambda x: x.view(np.float32), "uint_as_float": lambda x: x.view(np.float32),
    "double_as_longlong": lambda x: x.view(np.int64), "longlong_as_double": lambda x: x.view(np.float64),
    **dict(rounding_functions()),
}  # fmt: skip


def function_name(symbol: str) -> str:
    """Return the name in ``FUNCTIONS`` of a symbol such as ``__nv_tanhf`` or ``__ocml_tanh_f32``."""
    name = re.sub(r"^__(nv|ocml)_", "", symbol)
    name = re.sub(r"_(f16|f32|f64|bf16)$", "", name)
    name = name.replace("fmaf_", "fma_")
    for other in (name[:-1] if name.endswith("f") else name, name[1:] if name[:1] in ("f", "d") else name):
        if name not in FUNCTIONS and other in FUNCTIONS:
            name = other
    return name
