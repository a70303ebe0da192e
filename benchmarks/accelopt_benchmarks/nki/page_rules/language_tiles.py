"""nki.language: reductions, composites, moves, and new tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import COLUMN, WHOLE, Array, PageRule, X, Y, new

CUBE = X.reshape(32, 4, 16)
HALVES = X.astype(np.float16)
TRUTH = (X > 0).astype(np.float32)
PLACES = np.argsort(X, axis=1).astype(np.uint32)
TALL = np.arange(200 * 16, dtype=np.float32).reshape(200, 16)
FACTORS = X[:, :8] + 1
LARGE = WHOLE // 2 * 2 + 1
_REDUCTIONS: dict[str, Any] = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "prod": np.prod,
    "var": np.var,
}
_IN_PSUM = f"{new('p', buffer='psum')}\nnisa.tensor_copy(p, x)"


def _reductions() -> list[PageRule]:
    rules = []
    for name, function in _REDUCTIONS.items():
        call, cube = f"nl.{name}", (FACTORS if name == "prod" else CUBE).reshape(32, 4, -1)
        flat = cube.reshape(32, -1)
        kept = "(32, 4, 1)"
        plain = kept if name == "var" else "(32, 4)"
        rules += [
            PageRule(call, "along the free dimension", f"o = {call}(x, axis=1)", function(flat, axis=1, keepdims=True),
                 (flat,)),
            PageRule(call, "of the last dimensions", f"o = {call}(x, axis=[1, 2], keepdims=True)",
                 function(cube, axis=(1, 2), keepdims=True), (cube,)),
            PageRule(call, "a tuple of axes", f"o = {call}(x, axis=(1, 2), keepdims=True)",
                 function(cube, axis=(1, 2), keepdims=True), (cube,)),
            PageRule(call, "of the last dimension, kept", f"o = {call}(x, axis=2, keepdims=True)\n"
                 f"assert o.shape == {kept}", function(cube, axis=2, keepdims=True), (cube,)),
            PageRule(call, "of the last dimension" + (": keepdims is ignored" if name == "var" else ""),
                 f"o = {call}(x, axis=2, keepdims=False)\nassert o.shape == {plain}",
                 function(cube, axis=2, keepdims=name == "var"), (cube,)),
            PageRule(call, "in the operand's type", f"o = {call}(x, axis=1)\nassert o.dtype == nl.float16",
                 function(flat.astype(np.float16).astype(np.float32), axis=1, keepdims=True).astype(np.float16),
                 (flat.astype(np.float16),)),
            PageRule(call, "in the type that is asked for", f"o = {call}(x, axis=1, dtype=nl.float32)\n"
                 "assert o.dtype == nl.float32",
                 function(flat.astype(np.float16).astype(np.float32), axis=1, keepdims=True),
                 (flat.astype(np.float16),)),
        ]  # fmt: skip
        rules += _axes(call)
    return [
        *rules,
        PageRule("nl.all", "1 where all are true", "o = nl.all(x, axis=1)",
             np.all(X[:, :4] > -1, axis=1, keepdims=True).astype(np.float32), ((X[:, :4] > -1).astype(np.float32),)),
        PageRule("nl.all", "in the type that is asked for", "o = nl.all(x, axis=1, dtype=nl.uint8)",
             np.all(X[:, :4] > -1, axis=1, keepdims=True).astype(np.uint8), ((X[:, :4] > -1).astype(np.float32),)),
        PageRule("nl.all", "has no keepdims", "o = nl.all(x, axis=1, keepdims=True)", None, (TRUTH,)),
        *_axes("nl.all"),
    ]  # fmt: skip


def _axes(call: str) -> list[PageRule]:
    return [
        PageRule(call, "not the partitions", f"o = {call}(x, axis=0)", None, (X,)),
        PageRule(call, "nor with others", f"o = {call}(x, axis=[0, 1])", None, (X,)),
        PageRule(call, "the last dimensions only", f"o = {call}(x, axis=1)", None, (CUBE,)),
        PageRule(call, "a dimension that exists", f"o = {call}(x, axis=2)", None, (X,)),
        PageRule(call, "an axis is needed", f"o = {call}(x)", None, (X,)),
        PageRule(call, "takes a tile, no tensor in HBM", f"o = {call}(a, axis=1)", None, (X,)),
    ]


def _root(x: Array, n: int, epsilon: float = 1e-6) -> Any:
    return np.sqrt((x * x).sum(1, keepdims=True) / n + epsilon)


def _composites() -> list[PageRule]:
    powers = np.exp(X - X.max(1, keepdims=True))
    share = powers / powers.sum(1, keepdims=True)
    cubes = np.exp(CUBE)
    norm = "nl.rms_norm"
    return [
        PageRule("nl.softmax", "along the last dimension", "o = nl.softmax(x)", share, (X,)),
        PageRule("nl.softmax", "along axis 1", "o = nl.softmax(x, axis=1)", share, (X,)),
        PageRule("nl.softmax", "large values", "o = nl.softmax(x, axis=1)", share, (X + 200,)),
        PageRule("nl.softmax", "along the last dimensions", "o = nl.softmax(x, axis=[1, 2])",
             cubes / cubes.sum((1, 2), keepdims=True), (CUBE,)),
        PageRule("nl.softmax", "in the type that is asked for",
             "o = nl.softmax(x, axis=1, dtype=nl.float16)\nassert o.dtype == nl.float16", share.astype(np.float16),
             (X,)),
        PageRule("nl.softmax", "not the partitions", "o = nl.softmax(x, axis=0)", None, (X,)),
        PageRule("nl.softmax", "the last dimensions only", "o = nl.softmax(x, axis=1)", None, (CUBE,)),
        PageRule(norm, "x / RMS(x) * w", f"o = {norm}(x, y, axis=1, n=64)", X / _root(X, 64) * Y, (X, Y)),
        PageRule(norm, "of n values", f"o = {norm}(x, y, axis=1, n=32)", X / _root(X, 32) * Y, (X, Y)),
        PageRule(norm, "epsilon", f"o = {norm}(x, y, 1, 64, epsilon=0.5)", X / _root(X, 64, 0.5) * Y, (X, Y)),
        PageRule(norm, "in the type that is asked for",
             f"o = {norm}(x, y, 1, 64, dtype=nl.float16)\nassert o.dtype == nl.float16",
             (X / _root(X, 64) * Y).astype(np.float16), (X, Y)),
        PageRule(norm, "computed in float32, in the operand's type",
             f"o = {norm}(x, y, 1, 64, compute_dtype=nl.float32)\nassert o.dtype == nl.float16",
             (HALVES.astype(np.float32) / _root(HALVES.astype(np.float32), 64)).astype(np.float16),
             (HALVES, np.ones_like(HALVES))),
        PageRule(norm, "n is needed", f"o = {norm}(x, y, axis=1)", None, (X, Y)),
        PageRule("nl.where", "x where the condition is 1, else y", "o = nl.where(z, x, y)", np.where(TRUTH, X, Y), (X,
             Y, TRUTH)),
        PageRule("nl.where", "in the type that is asked for",
             "o = nl.where(z, x, y, dtype=nl.float16)\nassert o.dtype == nl.float16",
             np.where(TRUTH, X, Y).astype(np.float16), (X, Y, TRUTH)),
        PageRule("nl.where", "takes tiles, no tensor in HBM", "o = nl.where(c, x, y)", None, (X, Y, TRUTH)),
    ]  # fmt: skip


def _moves() -> list[PageRule]:
    copied, cast = "o = nl.copy({})", "in the type that is asked for"
    sums = X.astype(np.float16)
    return [
        PageRule("nl.load", "from HBM to SBUF", "o = nl.load(a)\nassert o.buffer == nl.sbuf", X, (X,)),
        PageRule("nl.load", "a part", "o = nl.load(a[64:192, 0:8])", TALL[64:192, :8], (TALL,)),
        PageRule("nl.load", cast, "o = nl.load(a, dtype=nl.float16)\nassert o.dtype == nl.float16", sums, (X,)),
        PageRule("nl.load", "not from SBUF", "o = nl.load(x)", None, (X,)),
        PageRule("nl.load", "128 partitions", "o = nl.load(a)", None, (TALL,)),
        PageRule("nl.load_transpose2d", "swaps", "o = nl.load_transpose2d(a)\nassert o.buffer == nl.sbuf", X.T, (X,)),
        PageRule("nl.load_transpose2d", cast, "o = nl.load_transpose2d(a, dtype=nl.float16)\n"
             "assert o.dtype == nl.float16", X.T.astype(np.float16), (X,)),
        PageRule("nl.load_transpose2d", "two dimensions", "o = nl.load_transpose2d(a)", None, (CUBE,)),
        PageRule("nl.load_transpose2d", "not from SBUF", "o = nl.load_transpose2d(x)", None, (X,)),
        PageRule("nl.store", "from SBUF to HBM",
             f"{new('r', buffer='shared_hbm')}\nnl.store(r, x)\nreturn r", X, (X,)),
        PageRule("nl.store", "a part", f"{new('r', buffer='shared_hbm')}\nnl.store(r[:, 0:32], x[:, 32:64])\n"
             "nl.store(dst=r[:, 32:64], value=x[:, 0:32])\nreturn r", np.roll(X, 32, 1), (X,)),
        PageRule("nl.store", "not to SBUF", f"{new('o')}\nnl.store(o, x)", None, (X,)),
        PageRule("nl.store", "not from PSUM",
             f"{_IN_PSUM}\n{new('r', buffer='shared_hbm')}\nnl.store(r, p)\nreturn r", None, (X,)),
        PageRule("nl.store", "a tile, no number", f"{new('r', buffer='shared_hbm')}\nnl.store(r, 1.0)\nreturn r", None,
             (X,)),
        PageRule("nl.store", "not to an input", "nl.store(a, x)\no = x", None, (X,)),
        PageRule("nl.copy", "to SBUF", f"{copied.format('x')}\nassert o.buffer == nl.sbuf", X, (X,)),
        PageRule("nl.copy", "from PSUM", f"{_IN_PSUM}\n{copied.format('p')}\nassert o.buffer == nl.sbuf", X, (X,)),
        PageRule("nl.copy", "bit by bit where the types are one", copied.format("x"), LARGE, (LARGE,)),
        PageRule("nl.copy", cast, "o = nl.copy(x, dtype=nl.float16)\nassert o.dtype == nl.float16", sums, (X,)),
        PageRule("nl.copy", "not from HBM", copied.format("a"), None, (X,)),
        PageRule("nl.matmul", "x.T @ y, in PSUM", "p = nl.matmul(x, y, transpose_x=True)\n"
             "assert p.buffer == nl.psum\no = nl.copy(p)", X.T @ Y, (X, Y)),
        PageRule("nl.matmul", "x @ y (the page; the known issues forbid it)", "o = nl.copy(nl.matmul(x, y))",
             X @ Y.reshape(64, 32), (X, Y.reshape(64, 32))),
        PageRule("nl.matmul", "one contraction", "o = nl.copy(nl.matmul(x, y, transpose_x=True))", None, (X, Y[:16])),
        PageRule("nl.matmul", "one contraction of x @ y", "o = nl.copy(nl.matmul(x, y))", None, (X, Y)),
        PageRule("nl.matmul", "128 columns of x", "o = nl.copy(nl.matmul(x, y, transpose_x=True))", None,
             (np.ones((32, 129), np.float32), Y)),
        PageRule("nl.matmul", "512 columns of y", "o = nl.copy(nl.matmul(x, y, transpose_x=True))",
             X.T @ np.ones((32, 512), np.float32), (X, np.ones((32, 512), np.float32))),
        PageRule("nl.matmul", "no more", "o = nl.copy(nl.matmul(x, y, transpose_x=True))", None,
             (X, np.ones((32, 513), np.float32))),
        PageRule("nl.matmul", "reads SBUF", f"{_IN_PSUM}\no = nl.copy(nl.matmul(p, x, transpose_x=True))", None, (X,)),
        PageRule("nl.transpose", "swaps", "o = nl.copy(nl.transpose(x))", X.T, (X,)),
        PageRule("nl.transpose", cast, "r = nl.transpose(x, dtype=nl.float16)\nassert r.dtype == nl.float16\n"
             "o = nl.copy(r)", X.T.astype(np.float16), (X,)),
        PageRule("nl.transpose", "two dimensions", "o = nl.copy(nl.transpose(x))", None, (CUBE,)),
        PageRule("nl.transpose", "takes a tile, no tensor in HBM", "o = nl.copy(nl.transpose(a))", None, (X,)),
        PageRule("nl.broadcast_to", "free dimensions", "o = nl.copy(nl.broadcast_to(x, (32, 64)))",
             COLUMN.repeat(64, 1), (COLUMN,)),
        PageRule("nl.broadcast_to", "partitions", "o = nl.copy(nl.broadcast_to(x, shape=(32, 64)))", X[:1].repeat(32,
             0), (X[:1],)),
        PageRule("nl.broadcast_to", "the same shape", "o = nl.broadcast_to(x, (32, 64))", X, (X,)),
        PageRule("nl.broadcast_to", "the same shape, cast",
             "o = nl.broadcast_to(x, (32, 64), dtype=nl.float16)\nassert o.dtype == nl.float16", sums, (X,)),
        PageRule("nl.broadcast_to", cast,
             "o = nl.broadcast_to(x, (32, 64), dtype=nl.float16)\nassert o.dtype == nl.float16",
             COLUMN.repeat(64, 1).astype(np.float16), (COLUMN,)),
        PageRule("nl.broadcast_to", "the same rank", "o = nl.copy(nl.broadcast_to(x, (32, 4, 64)))", None, (X,)),
        PageRule("nl.broadcast_to", "from 1 only", "o = nl.copy(nl.broadcast_to(x, (32, 128)))", None, (X,)),
        PageRule("nl.broadcast_to", "from SBUF or PSUM", "o = nl.copy(nl.broadcast_to(a, (32, 64)))", None, (COLUMN,)),
        PageRule("nl.expand_dims", "in the middle",
             "o = nl.copy(nl.expand_dims(x, 1))\nassert o.shape == (32, 1, 64)", X[:, None], (X,)),
        PageRule("nl.expand_dims", "at the end, by name", "o = nl.copy(nl.expand_dims(x=x, axis=2))", X[..., None],
             (X,)),
        PageRule("nl.expand_dims", "not before the partitions", "o = nl.copy(nl.expand_dims(x, 0))", None, (X,)),
        PageRule("nl.expand_dims", "a place that exists", "o = nl.copy(nl.expand_dims(x, 4))", None, (X,)),
        PageRule("nl.gather_flattened", "by free position", "o = nl.gather_flattened(x, y)",
             np.take_along_axis(X, PLACES.astype(int), 1), (X, PLACES)),
        PageRule("nl.gather_flattened", "data is flattened", "o = nl.gather_flattened(x, y)",
             np.take_along_axis(X, PLACES.astype(int), 1), (CUBE, PLACES)),
        PageRule("nl.gather_flattened", cast,
             "o = nl.gather_flattened(x, y, dtype=nl.float16)\nassert o.dtype == nl.float16",
             np.take_along_axis(X, PLACES.astype(int), 1).astype(np.float16), (X, PLACES)),
        PageRule("nl.gather_flattened", "whole positions", "o = nl.gather_flattened(x, y)", None, (X, Y)),
        PageRule("nl.gather_flattened", "positions that exist", "o = nl.gather_flattened(x, y)", None, (X, PLACES +
             np.uint32(1))),
        PageRule("nl.ds", "a slice of size elements", "o = nl.copy(x[:, nl.ds(16, 8)])", X[:, 16:24], (X,)),
        PageRule("nl.ds", "of partitions", "o = nl.copy(x[nl.ds(0, 8), :])", X[:8], (X,)),
        PageRule("nl.ds", "from a register", "r = nisa.register_alloc(8)\no = nl.copy(x[:, nl.ds(r, 8)])", X[:, 8:16],
             (X,)),
        PageRule("nl.ds", "from no tensor", "i = nl.full((1, 1), 8, dtype=nl.int32)\no = nl.copy(x[:, nl.ds(i, 8)])",
             None, (X,)),
        PageRule("nl.ds", "inside of the tensor", "o = nl.copy(x[:, nl.ds(60, 8)])", None, (X,)),
    ]  # fmt: skip


RULES = (*_reductions(), *_composites(), *_moves())
