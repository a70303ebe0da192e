"""Element-wise and reducing operations by name, with their NumPy meaning in float32 and the engine that has them;
means, variances and running results of VectorE over the free dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def erf(x: Array) -> Array:
    """Return the error function. Abramowitz and Stegun 7.1.26 in float64: absolute error below 1.5e-7."""
    z = np.abs(x.astype(np.float64))
    t = 1.0 / (1.0 + 0.3275911 * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(np.sign(x) * (1.0 - series * np.exp(-z * z)), dtype=x.dtype)


def sigmoid(x: Array) -> Array:
    y = np.negative(x)
    with np.errstate(over="ignore"):
        np.exp(y, out=y)
    y += 1
    return np.reciprocal(y, out=y)


def softplus(x: Array) -> Array:
    return np.logaddexp(x, np.zeros((), dtype=x.dtype)).astype(x.dtype)


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + erf(x / np.float32(np.sqrt(2.0)))), dtype=x.dtype)


def _gelu_tanh(x: Array) -> Array:
    inner = np.float32(np.sqrt(2.0 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.asarray(0.5 * x * (1.0 + np.tanh(inner)), dtype=x.dtype)


def _silu_derivative(x: Array) -> Array:
    s = sigmoid(x)
    return np.asarray(s * (1 + x * (1 - s)))


def _gelu_derivative(x: Array) -> Array:
    density = np.exp(-x * x / 2) / np.float32(np.sqrt(2 * np.pi))
    return np.asarray(0.5 * (1.0 + erf(x / np.float32(np.sqrt(2.0)))) + x * density, dtype=x.dtype)


def _gelu_sigmoid_derivative(x: Array) -> Array:
    s = sigmoid(np.float32(1.702) * x)
    return np.asarray(s + np.float32(1.702) * x * s * (1 - s), dtype=x.dtype)


def _shifted_right(x: Array, y: Any) -> Array:
    """Shift zeros in from the left, whatever the sign."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x.dtype
    result: Array = np.right_shift(x.view(unsigned), np.asarray(y).astype(unsigned)).view(x.dtype)
    return result


def _by_size(x: Array, axes: Any, place: Callable[..., Any]) -> Array:
    """Return the element of each partition whose size has the ``place`` of all, with its sign."""
    rows = x.reshape(len(x), -1)
    result: Array = rows[np.arange(len(rows)), place(np.abs(rows), axis=1)]
    return result


#: Functions that ScalarE computes (``nisa.activation``); the documentation's list of activation functions.
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "copy": np.copy, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "square": np.square, "tanh": np.tanh,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)), "sigmoid": sigmoid, "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "silu": lambda x: x * sigmoid(x), "silu_dx": _silu_derivative, "gelu": _gelu, "gelu_apprx_tanh": _gelu_tanh,
    "gelu_apprx_sigmoid": lambda x: x * sigmoid(np.float32(1.702) * x),
    "gelu_dx": _gelu_derivative, "gelu_apprx_sigmoid_dx": _gelu_sigmoid_derivative,
    "erf_dx": lambda x: np.float32(2 / np.sqrt(np.pi)) * np.exp(-x * x),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "arctan": np.arctan, "erf": erf,
    "softplus": softplus, "mish": lambda x: x * np.tanh(softplus(x)), "abs": np.abs, "sign": np.sign,
    "reciprocal": np.reciprocal, "negative": np.negative,
}  # fmt: skip

#: Functions ``nl`` offers on a tile that run on VectorE.
VECTOR_UNARY: dict[str, Callable[[Array], Array]] = {
    "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "invert": np.invert, "logical_not": np.logical_not,
}  # fmt: skip

#: Operations with two operands: ``tensor_tensor``, ``tensor_scalar``, reductions.
BINARY: dict[str, Callable[..., Array]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "max": np.maximum, "min": np.minimum, "mod": np.mod, "fmod": np.fmod,
    "equal": np.equal, "not_equal": np.not_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "less": np.less, "less_equal": np.less_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "left_shift": np.left_shift, "right_shift": _shifted_right,
    # the larger or smaller one of both, with its sign
    "abs_max": lambda x, y: np.asarray(np.where(np.abs(x) > np.abs(y), x, y)),
    "abs_min": lambda x, y: np.asarray(np.where(np.abs(x) < np.abs(y), x, y)),
}  # fmt: skip

#: Operations with one operand that stand where one with two may: ``tensor_scalar`` leaves the other alone.
UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs, "square": np.square, "relu": lambda x: np.maximum(x, x.dtype.type(0)), "invert": np.invert,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)), "reciprocal": np.reciprocal,
}  # fmt: skip

#: Operations that give a truth value, stored as a number.
PREDICATES = frozenset(
    {
        "equal",
        "not_equal",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
    }
)

#: Operations that treat values as bits: integers stay integers.
BITWISE = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"})

REDUCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add.reduce, "multiply": np.multiply.reduce, "maximum": np.maximum.reduce, "minimum": np.minimum.reduce,
    "max": np.maximum.reduce, "min": np.minimum.reduce,
    "logical_or": np.logical_or.reduce, "logical_and": np.logical_and.reduce, "logical_xor": np.logical_xor.reduce,
    "subtract": np.subtract.reduce, "average": np.mean,
    "bitwise_and": np.bitwise_and.reduce, "bitwise_or": np.bitwise_or.reduce, "bitwise_xor": np.bitwise_xor.reduce,
    "abs_max": lambda x, axis: _by_size(x, axis, np.argmax), "abs_min": lambda x, axis: _by_size(x, axis, np.argmin),
}  # fmt: skip

#: Other spellings of an operation: NumPy's function names.
_SPELLINGS = {
    "amax": "max", "amin": "min", "true_divide": "divide", "sum": "add", "prod": "multiply", "all": "logical_and",
    "remainder": "mod",
    "absolute": "abs", "arctan": "arctan", "bitwise_invert": "invert",
}  # fmt: skip


def operation_name(token: Any) -> str:
    """Return the name of the operation that a kernel passes as ``op``: an ``nl`` function, a NumPy function
    or a string."""
    name = token if isinstance(token, str) else getattr(token, "__name__", "")
    return _SPELLINGS.get(name, name)


# What steps compute: parameters first, then the values of their inputs


def real(value: Any) -> Any:
    """Return the operand as arithmetic instructions see it: in float32."""
    if isinstance(value, np.ndarray) and value.dtype != np.float32:
        return value.astype(np.float32)
    return value


def matched(value: Any, data: Array) -> Any:
    """Return an operand in the shape of ``data``: same elements regrouped, one value per partition, or a number."""
    if not isinstance(value, np.ndarray):
        return np.float32(value) if data.dtype.kind == "f" else value
    if value.shape == data.shape:
        return value
    if value.size == data.size:
        return value.reshape(data.shape)
    if value.size == data.shape[0]:
        return value.reshape(data.shape[0], *[1] * (data.ndim - 1))
    return value


def arithmetic(name: str, x: Any, y: Any, reverse: bool = False) -> Any:
    """Return ``x name y``, or ``y name x``: computed in float32, bits as they are; "bypass" is ``x``."""
    if name == "bypass":
        return y if reverse else x
    if name in UNARY:
        return UNARY[name](x if name in BITWISE else real(x))
    if reverse:
        x, y = y, x
    if name in BITWISE:
        return BINARY[name](x, y)
    result = BINARY[name](real(x), real(y))
    return result.astype(np.float32) if name in PREDICATES else result


def flipped(x: Array) -> Array:
    """Return whole numbers with their last bit turned: what stands for a logical not."""
    return np.asarray(x ^ x.dtype.type(1))


def predicate(name: str, x: Any, y: Any) -> Array:
    """Return a truth value of NumPy's as the number that it is stored as."""
    return BINARY[name](x, y).astype(np.float32)


def flat(x: Array) -> Array:
    """Return the values in float32 with their free dimensions as one."""
    values: Array = real(x).reshape(x.shape[0], -1)
    return values


def paired(name: str, exact: bool, x: Array, y: Array) -> Any:
    """Return ``x name y`` of two tiles; ``exact`` in their own type."""
    return BINARY[name](x, matched(y, x)) if exact else arithmetic(name, x, matched(y, x))


def broadcast_values(shape: tuple[int, ...], x: Array) -> Array:
    return np.broadcast_to(x, shape)


def bits(source: np.dtype[Any], dtype: np.dtype[Any], shape: tuple[int, ...], x: Array) -> Array:
    """Return the bits of values of ``source``, of which narrow floats come as float32, as another type."""
    return np.ascontiguousarray(x.astype(source, copy=False)).view(dtype).reshape(shape)


# Moves and products, which copy elision recognises by identity


def copy_values(x: Any) -> Any:
    """Return the values as they are: loads, stores and copies."""
    return x


def transpose_values(x: Array) -> Any:
    """Return the transpose of a tile, its free dimensions taken as one."""
    return x.reshape(x.shape[0], -1).T


def multiply_values(a: Array, b: Array) -> Array:
    """Return the product of two operands of TensorE, the first transposed."""
    product: Array = np.matmul(a.reshape(a.shape[0], -1).T, b.reshape(b.shape[0], -1))
    return product


def multiply_double_rows(a: Array, b: Array) -> Array:
    """Return the product of operands with two rows in each partition, ``[K, 2, M]`` and ``[K, 2, N]``."""
    return multiply_values(a.reshape(2 * len(a), *a.shape[2:]), b.reshape(2 * len(b), *b.shape[2:]))


def halves(x: Array) -> Array:
    """Count, mean and centred sum of squares per partition, in the six columns of ``bn_stats``: the statistics of
    the even elements, then those of the odd ones."""
    x = flat(x)
    columns: list[Array] = []
    for half in (x[:, 0::2], x[:, 1::2]):
        mean = half.mean(axis=1) if half.shape[1] else np.zeros(len(x), x.dtype)
        spread = ((half - mean[:, None]) ** 2).sum(axis=1)
        columns += [np.full(len(x), half.shape[1], x.dtype), mean, spread]
    return np.stack(columns, axis=1)


def combined(x: Array) -> Array:
    """Return mean and variance per partition from the columns of ``halves``."""
    parts = real(x).reshape(x.shape[0], -1, 3)
    count, mean, spread = parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]
    total = count.sum(axis=1)
    centre = (count * mean).sum(axis=1) / total
    square = (spread + count * (mean - centre[:, None]) ** 2).sum(axis=1)
    return np.stack([centre, square / total], axis=1)


def scanned(first: str, second: str, reverse0: bool, reverse1: bool, x: Array, y: Array, start: Any) -> Array:
    """``r[i] = second(first(x[i], r[i-1]), y[i])`` along the free dimensions; ``start``: one or P values."""
    a, b = flat(x), flat(y)
    # one column after another; transposed so that each step reads contiguous memory
    left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    out = np.empty_like(left)
    state: Array = np.broadcast_to(np.asarray(start, dtype=left.dtype).reshape(-1), left.shape[1:])
    for i in range(len(left)):
        state = arithmetic(first, left[i], state, reverse0)
        state = arithmetic(second, state, right[i], reverse1)
        out[i] = state
    return np.ascontiguousarray(out.T)
