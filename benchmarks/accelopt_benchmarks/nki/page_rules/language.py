"""nki.language: tensors and functions."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import (
    PageRule,
    X,
    Y,
    new,
)


def _tensors() -> list[PageRule]:
    """nki.language.NkiTensor: indices; functions of nki.language."""
    row, last = new("o", like="(1, 64)"), new("o", like="(32, 1)")
    turned = f"{new('o', like='(64, 32)')}\nnisa.tensor_copy(o, nl.transpose(x))"
    return [
        PageRule("nl.NkiTensor", "an index keeps the partitions", f"{row}\nnisa.tensor_copy(o, x[3])", X[3:4], (X,)),
        PageRule("nl.NkiTensor", "at least two dimensions", f"{last}\nnisa.tensor_copy(o, x[..., 5])", X[:, 5:6], (X,)),
        PageRule("nl.NkiTensor", "negative indices", f"{last}\nnisa.tensor_copy(o, x[0:32, -1])", X[:, -1:], (X,)),
        PageRule("nl.NkiTensor", "negative ends of slices",
             f"{new('o', like='(32, 32)')}\nnisa.tensor_copy(o, x[:, -32:])",
             X[:, -32:], (X,)),
        PageRule("nl.NkiTensor", "beyond the end", f"{row}\nnisa.tensor_copy(o, x[32])", None, (X,)),
        PageRule("nl.transpose", "lies in PSUM", turned, X.T, (X,)),
        PageRule("nl.transpose", "has a type", turned.replace("transpose(x)", "transpose(x, dtype=nl.float32)"), X.T,
             (X,)),
        PageRule("nl.var", "along free dimensions", "o = nl.var(x, axis=1)", X.var(1, keepdims=True), (X,)),
        PageRule("nl.mean", "along free dimensions", "o = nl.mean(x, axis=1)", X.mean(1, keepdims=True), (X,)),
        PageRule("nl.rms_norm", "with weights", "o = nl.rms_norm(x, y, axis=1, n=64)",
             X / np.sqrt((X * X).mean(1, keepdims=True) + 1e-6) * Y, (X, Y)),
        PageRule("nl.softmax", "along free dimensions", "o = nl.softmax(x, axis=1)",
             np.exp(X) / np.exp(X).sum(1, keepdims=True), (X,)),
        PageRule("nl.abs_max", "the larger one with its sign", "o = nl.abs_max(x, y)", np.where(abs(X) > abs(Y), X, Y),
             (X, Y),
             "trn3"),
        PageRule("nl.divide", "is no instruction", "o = nl.divide(x, y)", None, (X, Y)),
        PageRule("nl.power", "takes no number", "o = nl.power(x, 2.0)", None, (X,)),
        PageRule("nl.matmul", "with transpose_x",
             f"{new('o', like='(64, 64)')}\nnisa.tensor_copy(o, nl.matmul(x, y, transpose_x=True))", X.T @ Y, (X, Y)),
        PageRule("nl.load_transpose2d", "swaps", "o = nl.load_transpose2d(a)", X.T, (X,)),
        PageRule("nl.gather_flattened", "by free position",
             f"{new('i', 'uint32')}\nnisa.iota(i, [[-1, 64]], 63)\no = nl.gather_flattened(x, i)", X[:, ::-1], (X,)),
    ]  # fmt: skip


RULES = (*_tensors(),)
