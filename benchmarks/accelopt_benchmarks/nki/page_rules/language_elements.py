"""nki.language: functions of one element, or of two that stand at one place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import COLUMN, WHOLE, Array, PageRule, X, Y

POSITIVE = np.abs(X) + np.float32(0.1)
WIDE = np.linspace(-20, 20, 32 * 64, dtype=np.float32).reshape(32, 64)
FRACTIONS = np.array([[-3.7, -3.2, -0.5, 0.0, 0.5, 3.2, 3.7, 2.0]], np.float32).repeat(32, 0)
SMALL = np.arange(32 * 8, dtype=np.int32).reshape(32, 8)
TRUTH = (X > 0).astype(np.float32)
TRUTH_TOO = (Y > 0).astype(np.float32)
FLAGS, FLAGS_TOO = TRUTH.astype(np.int32), TRUTH_TOO.astype(np.int32)
ROWS = np.arange(2, 34, dtype=np.float32).reshape(32, 1)


def _erf(x: Array) -> Any:
    return np.vectorize(math.erf)(x.astype(np.float64))


def _sigmoid(x: Array) -> Any:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def _softplus(x: Array) -> Any:
    return np.log1p(np.exp(x.astype(np.float64)))


def _normal(x: Array) -> Any:
    return 0.5 * (1 + _erf(x / math.sqrt(2)))


def _gelu_tanh(x: Array) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _sigmoid_gelu_dx(x: Array) -> Any:
    s = _sigmoid(1.702 * x)
    return s + 1.702 * x * s * (1 - s)


def _silu_dx(x: Array) -> Any:
    s = _sigmoid(x)
    return s + x * s * (1 - s)


def _gelu_dx(x: Array) -> Any:
    return _normal(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


#: What each function of one operand is by its definition, and where it is tried.
_UNARY: dict[str, tuple[Callable[[Array], Any], Array]] = {
    "abs": (np.abs, X), "square": (np.square, X), "exp": (np.exp, X), "log": (np.log, POSITIVE),
    "sqrt": (np.sqrt, POSITIVE), "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE), "tanh": (np.tanh, X),
    "sigmoid": (_sigmoid, X), "relu": (lambda x: np.maximum(x, 0), X), "gelu": (lambda x: x * _normal(x), X),
    "gelu_apprx_sigmoid": (lambda x: x * _sigmoid(1.702 * x), X), "gelu_apprx_tanh": (_gelu_tanh, X),
    "gelu_dx": (_gelu_dx, X), "gelu_apprx_sigmoid_dx": (_sigmoid_gelu_dx, X), "silu": (lambda x: x * _sigmoid(x), X),
    "silu_dx": (_silu_dx, X), "softplus": (_softplus, X), "mish": (lambda x: x * np.tanh(_softplus(x)), X),
    "erf": (_erf, X), "erf_dx": (lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x), X),
    "reciprocal": (lambda x: 1 / x, X), "sin": (np.sin, WIDE), "cos": (np.cos, X), "tan": (np.tan, X / 4),
    "arctan": (np.arctan, X / 4), "ceil": (np.ceil, FRACTIONS), "floor": (np.floor, FRACTIONS),
    "trunc": (np.trunc, FRACTIONS), "negative": (np.negative, X), "sign": (np.sign, FRACTIONS),
}  # fmt: skip
#: Values that the pages' examples state: function, argument, result.
_EXAMPLES = (
    ("abs", -1.0, 1.0), ("square", 3.0, 9.0), ("exp", 0.0, 1.0), ("log", 1.0, 0.0), ("sqrt", 4.0, 2.0),
    ("rsqrt", 4.0, 0.5), ("reciprocal", 4.0, 0.25), ("sin", 0.0, 0.0), ("cos", 0.0, 1.0), ("tan", 0.0, 0.0),
    ("arctan", 0.0, 0.0), ("ceil", 3.2, 4.0), ("ceil", -3.7, -3.0), ("floor", 3.7, 3.0), ("floor", -3.2, -4.0),
    ("trunc", 3.7, 3.0), ("trunc", -3.7, -3.0), ("negative", 5.0, -5.0), ("sign", -5.0, -1.0),
)  # fmt: skip


def _unary() -> list[PageRule]:
    rules = []
    for name, (function, x) in _UNARY.items():
        call, value = f"nl.{name}", np.asarray(function(x), np.float32)
        halves = np.asarray(function(x.astype(np.float16).astype(np.float32)), np.float16)
        rules += [
            PageRule(call, "by its definition", f"o = {call}(x)", value, (x,)),
            PageRule(call, "in the type that is asked for",
                 f"o = {call}(x, dtype=nl.float16)\nassert o.dtype == nl.float16", value.astype(np.float16), (x,)),
            PageRule(call, "in the type of its operand", f"o = {call}(x)\nassert o.dtype == nl.float16", halves,
                 (x.astype(np.float16),)),
            PageRule(call, "makes a new tile in SBUF", f"o = {call}(x)\nassert o.buffer == nl.sbuf\no = x", x, (x,)),
            PageRule(call, "takes a tile, no tensor in HBM", f"o = {call}(a)", None, (x,)),
            PageRule(call, "takes a tile, no number", f"r = {call}(2.0)\no = nl.add(x, r)", None, (x,)),
        ]  # fmt: skip
    return [
        *rules,
        *(PageRule(f"nl.{name}", f"of {at}",
             f"o = nl.{name}(nl.full((128, 512), {at}, dtype=nl.float32, buffer=nl.sbuf))",
             np.full((128, 512), value, np.float32), (X,)) for name, at, value in _EXAMPLES),
        PageRule("nl.rsqrt", "no operand in PSUM (0.5)",
             "p = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.psum)\nnisa.tensor_copy(p, x)\no = nl.rsqrt(p)", None,
             (POSITIVE,)),
        PageRule("nl.square", "whole numbers stay whole", "o = nl.square(x)\nassert o.dtype == nl.int32", SMALL**2,
             (SMALL,)),
        PageRule("nl.sqrt", "to whole numbers: nearest", "o = nl.sqrt(x, dtype=nl.int32)",
             np.rint(np.sqrt(POSITIVE * 100)).astype(np.int32), (POSITIVE * 100,)),
        PageRule("nl.invert", "of bits", "o = nl.invert(x)", ~WHOLE, (WHOLE,)),
        PageRule("nl.invert", "integers only", "o = nl.invert(x)", None, (X,)),
        PageRule("nl.logical_not", "of 0 and 1", "o = nl.logical_not(x)", 1 - FLAGS, (FLAGS,)),
        PageRule("nl.logical_not", "exclusive or with 1", "o = nl.logical_not(x)", SMALL ^ 1, (SMALL,)),
    ]  # fmt: skip


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip
_LOGICAL: dict[str, Callable[[Any, Any], Any]] = {
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
_BITS: dict[str, Callable[[Any, Any], Any]] = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": lambda x, y: (x.view(np.uint32) >> np.asarray(y).astype(np.uint32)).view(np.int32),
}  # fmt: skip
_STEPS = (WIDE.round().astype(np.float32), np.zeros_like(WIDE))


def _arithmetic() -> list[PageRule]:
    rules = []
    for name, function in _BINARY.items():
        call = f"nl.{name}"
        rules += [
            PageRule(call, "of two tiles", f"o = {call}(x, y)", function(X, Y), (X, Y)),
            PageRule(call, "of a tile and a number", f"o = {call}(x, 2.0)", function(X, np.float32(2)), (X,)),
            PageRule(call, "of a number and a tile", f"o = {call}(0.5, x)", function(np.float32(0.5), X), (X,)),
            PageRule(call, "in the type that is asked for", f"o = {call}(x, y, dtype=nl.float16)\n"
                 "assert o.dtype == nl.float16", function(X, Y).astype(np.float16), (X, Y)),
            PageRule(call, "with a column (an example broadcasts, the known issues forbid it)", f"o = {call}(x, y)",
                 function(X, COLUMN), (X, COLUMN)),
            PageRule(call, "a row is not broadcast (known issues of 0.4)", f"o = {call}(x, y)", None, (X, X[:1])),
            PageRule(call, "one shape", f"o = {call}(x, y)", None, (X, Y[:, :32])),
            PageRule(call, "takes tiles, no tensor in HBM", f"o = {call}(a, x)", None, (X,)),
        ]  # fmt: skip
    return rules


def _truth() -> list[PageRule]:
    rules = []
    for name, function in (_COMPARED | _LOGICAL).items():
        x, y = _STEPS if name in _COMPARED else (TRUTH, TRUTH_TOO)
        call, value = f"nl.{name}", function(x, y)
        rules += [
            PageRule(call, "1 where it holds, in the operands' type", f"o = {call}(x, y)\nassert o.dtype == nl.float32",
                 value.astype(np.float32), (x, y)),
            PageRule(call, "in uint8", f"o = {call}(x, y, dtype=nl.uint8)\nassert o.dtype == nl.uint8",
                 value.astype(np.uint8), (x, y)),
            PageRule(call, "of a tile and a number", f"o = {call}(x, 1.0)", function(x, 1).astype(np.float32), (x,)),
            PageRule(call, "of a number and a tile", f"o = {call}(1.0, x)", function(1, x).astype(np.float32), (x,)),
            PageRule(call, "one of both is a tile", f"r = {call}(1.0, 2.0)\no = nl.add(x, r)", None, (x,)),
            PageRule(call, "of whole numbers", f"o = {call}(x, y)\nassert o.dtype == nl.int32",
                 function(FLAGS, FLAGS_TOO).astype(np.int32), (FLAGS, FLAGS_TOO)),
        ]  # fmt: skip
    return rules


def _bits() -> list[PageRule]:
    rules = []
    shifts = np.abs(WHOLE[::-1].copy() % 31).astype(np.int32)
    for name, function in _BITS.items():
        call, y = f"nl.{name}", shifts if "shift" in name else WHOLE[::-1].copy()
        rules += [
            PageRule(call, "of two tiles", f"o = {call}(x, y)", function(WHOLE, y), (WHOLE, y)),
            PageRule(call, "of a tile and a number", f"o = {call}(x, 5)", function(WHOLE, 5), (WHOLE,)),
            PageRule(call, "integers only", f"o = {call}(x, y)", None, (X, Y)),
            PageRule(call, "no fraction", f"o = {call}(x, 1.5)", None, (WHOLE,)),
            PageRule(call, "one of both is a tile", f"r = {call}(1, 2)\no = nl.add(x, r)", None, (WHOLE,)),
        ]  # fmt: skip
    return rules


def _others() -> list[PageRule]:
    rules = [
        PageRule("nl.power", "of two tiles", "o = nl.power(x, y)", np.power(POSITIVE, Y), (POSITIVE, Y)),
        PageRule(
            "nl.power", "no number as exponent (known issues of 0.4)", "o = nl.power(x, 2.0)", None, (X,)
        ),
        PageRule("nl.power", "no number as base", "o = nl.power(2.0, x)", None, (X,)),
        PageRule("nl.divide", "is no instruction", "o = nl.divide(x, y)", None, (X, Y)),
        PageRule("nl.divide", "nor by a number", "o = nl.divide(x, 2.0)", None, (X,)),
        PageRule("nl.fmod", "is no instruction", "o = nl.fmod(x, y)", None, (X, Y)),
        PageRule("nl.mod", "is no instruction", "o = nl.mod(x, y)", None, (X, Y)),
    ]
    for name, larger in (("abs_max", True), ("abs_min", False)):
        call = f"nl.{name}"

        def chosen(x: Array, y: Array, larger: bool = larger) -> Array:
            return np.where(abs(x) > abs(y) if larger else abs(x) < abs(y), x, y)

        rules += [
            PageRule(call, "keeps the sign", f"o = {call}(x, y)", chosen(X, Y), (X, Y), "trn3"),
            PageRule(call, "y where they tie", f"o = {call}(x, y)", -X, (X, -X), "trn3"),
            PageRule(call, "with a column, as its example", f"o = {call}(x, y)", chosen(X, COLUMN), (X, COLUMN),
                 "trn3"),
            PageRule(call, "with a number", f"o = {call}(x, -0.5)", chosen(X, np.float32(-0.5)), (X,), "trn3"),
            PageRule(call, "needs trn3", f"o = {call}(x, y)", None, (X, Y)),
        ]  # fmt: skip
    return rules


RULES = (*_unary(), *_arithmetic(), *_truth(), *_bits(), *_others())
