"""nki.isa: conversions, scalars with tensors, pairs of tensors, ScalarE and its registers."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import (
    BITS,
    COLUMN,
    HALVES,
    INTEGERS,
    OUT,
    SCALAR,
    WHOLE,
    PageRule,
    X,
    Y,
    new,
    rounded,
)


def _conversions() -> list[PageRule]:
    """Release notes of 0.6: casts to integers go to the nearest, ties to even, and saturate."""
    text, rules = "to integers: nearest, ties to even, saturating", []
    for kind in INTEGERS:
        expected = rounded(HALVES, np.dtype(kind).type)
        for function, call in (
            ("nisa.tensor_copy", "nisa.tensor_copy(o, x)"),
            ("nisa.activation", "nisa.activation(o, nl.copy, x)"),
            ("nisa.tensor_scalar", "nisa.tensor_scalar(o, x, nl.add, 0.0)"),
            ("nisa.dma_copy", "nisa.dma_copy(o, x)"),
        ):
            rules.append(
                PageRule(function, f"{text} ({kind})", f"{new('o', kind)}\n{call}", expected, (HALVES,))
            )
    return rules


def _scalar_operations() -> list[PageRule]:
    """nki.api.shared, Supported Math Operators; nki.isa.tensor_scalar: unary operators take None or 0."""
    positive = np.abs(X) + np.float32(0.1)
    values = {
        "abs": np.abs(X), "square": X * X, "relu": np.maximum(X, 0), "rsqrt": 1 / np.sqrt(positive),
        "reciprocal": 1 / X,
    }  # fmt: skip
    rules = [
        PageRule("nisa.tensor_scalar", f"{name} takes {none}", f"{OUT}\nnisa.tensor_scalar(o, x, nl.{name}, {none})",
             value,
             (positive if name == "rsqrt" else X,), "trn3")
        for name, value in values.items() for none in ("None", "0")
    ]  # fmt: skip
    one = "nisa.tensor_scalar"
    return [
        *rules,
        PageRule(one, "invert on bits", f"{BITS}\n{one}(o, x, nl.invert, None)", ~WHOLE, (WHOLE,)),
        PageRule(one, "right shift is logical", f"{BITS}\n{one}(o, x, nl.right_shift, 3)",
             (WHOLE.view(np.uint32) >> 3).view(np.int32), (WHOLE,)),
        PageRule(one, "reversed operands", f"{OUT}\n{one}(o, x, nl.subtract, 1.0, True, nl.multiply, y)",
             (1 - X) * COLUMN,
             (X, COLUMN)),
        PageRule(one, "a unary operator has no operand", f"{OUT}\n{one}(o, x, nl.abs, 2.0)", None, (X,)),
        PageRule(one, "square needs trn3", f"{OUT}\n{one}(o, x, nl.square, None)", None, (X,)),
        PageRule(one, "abs_max needs trn3", f"{OUT}\n{one}(o, x, nl.abs_max, 1.0)", None, (X,)),
        PageRule(one, "operations on bits need integers", f"{OUT}\n{one}(o, x, nl.bitwise_and, 1)", None, (X,)),
        PageRule(one, "operations on bits and arithmetic do not mix",
             f"{BITS}\n{one}(o, x, nl.bitwise_and, 7, op1=nl.add, operand1=1.0)", None, (WHOLE,)),
        PageRule(one, "no division", f"{OUT}\n{one}(o, x, nl.divide, 2.0)", None, (X,)),
        PageRule(one, "no remainder", f"{OUT}\n{one}(o, x, nl.mod, 2.0)", None, (X,)),
        PageRule(one, "operations on bits run on VectorE",
             f"{BITS}\n{one}(o, x, nl.bitwise_and, 7, engine=nisa.engine.gpsimd)", None, (WHOLE,)),
        PageRule(one, "GpSimdE has rsqrt alone", f"{OUT}\n{one}(o, x, nl.add, 1.0, engine=nisa.engine.gpsimd)", None,
             (X,)),
        PageRule(one, "ScalarE of trn2 has no subtraction",
             f"{OUT}\n{one}(o, x, nl.subtract, 1.0, engine=nisa.engine.scalar)", None, (X,)),
        PageRule("nisa.scalar_tensor_tensor", "no operations on bits",
             f"{BITS}\nnisa.scalar_tensor_tensor(o, x, nl.bitwise_and, 7, nl.add, x)", None, (WHOLE,)),
        PageRule("nisa.tensor_scalar_reduce", "no operations on bits",
             f"{BITS}\n{new('r', like='(32, 1)')}\nnisa.tensor_scalar_reduce(o, x, nl.bitwise_and, 7, nl.add, r)",
             None,
             (WHOLE,)),
        PageRule("nisa.tensor_scalar_reduce", "a minimum is reduced",
             f"{OUT}\n{new('r', like='(32, 1)')}\n"
             "nisa.tensor_scalar_reduce(o, x, nl.multiply, 2.0, nl.minimum, r)\no = r",
             (2 * X).min(1, keepdims=True), (X,)),
    ]  # fmt: skip


def _pairs() -> list[PageRule]:
    """nki.isa.tensor_tensor: int32 is exact where nothing lies in PSUM and no engine is named."""
    one = "nisa.tensor_tensor"
    added = (WHOLE.view(np.uint32) + WHOLE[::-1].copy().view(np.uint32)).view(np.int32)
    return [
        PageRule(one, "int32 is exact", f"{BITS}\n{one}(o, x, y, nl.add)", added, (WHOLE, WHOLE[::-1].copy())),
        PageRule(one, "VectorE goes through float32", f"{BITS}\n{one}(o, x, x, nl.maximum, engine=nisa.engine.vector)",
             rounded(WHOLE.astype(np.float32), np.int32), (WHOLE,)),
        PageRule(one, "operations on bits need integers", f"{OUT}\n{one}(o, x, x, nl.bitwise_or)", None, (X,)),
        PageRule(one, "abs_max keeps the sign", f"{OUT}\n{one}(o, x, y, nl.abs_max)", np.where(abs(X) > abs(Y), X, Y),
             (X, Y),
             "trn3"),
        PageRule(one, "no unary operators", f"{OUT}\n{one}(o, x, x, nl.square)", None, (X,), "trn3"),
        PageRule(one, "at most one operand in PSUM",
             f"{OUT}\n{new('p', buffer='psum')}\nnisa.tensor_copy(p, x)\n{one}(o, p, p, nl.add)", None, (X,)),
        PageRule("nisa.tensor_copy", "GpSimdE does not reach PSUM",
             f"{new('o', buffer='psum')}\nnisa.tensor_copy(o, x, engine=nisa.engine.gpsimd)", None, (X,)),
    ]  # fmt: skip


def _accumulations() -> list[PageRule]:
    """nki.isa.activation: the registers of ScalarE."""
    head = f"{new('d')}\n{new('n', 'bfloat16')}\n{SCALAR}"
    call = "nisa.activation({}, nl.exp, x, reduce_op=nl.add, reduce_res={}, reduce_cmd=nisa.reduce_cmd.{})"
    total = np.exp(X.astype(np.float64)).sum(1, keepdims=True)
    first = call.format("d", "None", "reset_reduce")
    return [
        PageRule("nisa.activation", "registers go on", f"{head}\n{first}\n{call.format('d', 'o', 'reduce')}", 2 * total,
             (X,)),
        PageRule("nisa.activation", "idle reads what the registers hold",
             f"{head}\n{first}\n{call.format('d', 'o', 'idle')}", total, (X,)),
        PageRule("nisa.activation", "what is reduced is not rounded",
             f"{head}\n{call.format('n', 'o', 'reset_reduce')}",
             total,
             (X,)),
        PageRule("nisa.activation", "its registers add",
             f"{head}\n{call.format('d', 'o', 'reset_reduce').replace('nl.add', 'nl.maximum')}", None, (X,)),
        PageRule("nisa.activation_reduce", "its registers add",
             f"{head}\nnisa.activation_reduce(d, nl.exp, x, nl.maximum, o)", None, (X,)),
        PageRule("nisa.activation", "a bias that is a number needs trn2",
             f"{OUT}\nnisa.activation(o, nl.exp, x, bias=1.0)", None,
             (X,), "trn1"),
        PageRule("nisa.exponential", "has a name, needs trn3", f"{OUT}\nnisa.exponential(o, x, name='e')", np.exp(X),
             (X,),
             "trn3"),
        PageRule("nisa.exponential", "not on trn2", f"{OUT}\nnisa.exponential(o, x)", None, (X,)),
    ]  # fmt: skip


RULES = (
    *_conversions(),
    *_scalar_operations(),
    *_pairs(),
    *_accumulations(),
)
