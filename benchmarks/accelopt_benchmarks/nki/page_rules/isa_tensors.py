"""nki.isa: element-wise operations of two operands, scans and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import COLUMN, WHOLE, Array, PageRule, X, Y, forbidden, page

OUT, BITS, RESULT = "o = sbuf(x.shape)", "o = sbuf(x.shape, nl.int32)", "o = sbuf(x.shape)\nr = sbuf((32, 1))"
OTHER = WHOLE[::-1].copy()
BAD, SHIFTS = np.ones((32, 2), np.float32), (np.abs(WHOLE) % 31).astype(np.int32)
SIGNS = np.round(X).astype(np.float32)
TWO_IN_PSUM = "p = psum(x.shape)\nq = psum(x.shape)\nnisa.tensor_copy(p, x)\nnisa.tensor_copy(q, y)"
_U = np.uint32
#: nki.api.shared, Supported Math Operators: binary arithmetic ones.
ARITHMETIC: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "equal": np.equal, "not_equal": np.not_equal, "greater_equal": np.greater_equal, "greater": np.greater,
    "less_equal": np.less_equal, "less": np.less, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}  # fmt: skip
BITVEC: dict[str, Any] = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": lambda x, y: (x.view(_U) >> y.astype(_U)).view(np.int32),
}  # fmt: skip


def _pairs() -> list[PageRule]:
    one, positive = "nisa.tensor_tensor", np.abs(X) + np.float32(0.1)

    def exact(op: str, x: Array, y: Array) -> Array:
        whole: Array = ARITHMETIC[op](x.view(_U), y.view(_U)).view(np.int32)
        return whole

    return [
        *page(one, *((name, f"{OUT}\n{one}(o, x, y, nl.{name})", f(SIGNS, SIGNS[::-1]).astype(np.float32), SIGNS,
                      SIGNS[::-1].copy()) for name, f in ARITHMETIC.items())),
        *page(one, *((name, f"{BITS}\n{one}(o, x, y, nl.{name})", f(WHOLE, SHIFTS), WHOLE, SHIFTS)
                     for name, f in BITVEC.items())),
        *page(
            one,
            ("power", f"{OUT}\n{one}(o, x, y, nl.power)", np.power(positive, Y), positive, Y),
            *((f"{op} of int32 is exact", f"{BITS}\n{one}(o, x, y, nl.{op})", exact(op, WHOLE, OTHER), WHOLE, OTHER)
              for op in ("subtract", "multiply")),
            ("one operand in PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n{OUT}\n{one}(o, y, p, nl.subtract)",
             Y - X,
             X, Y),
            ("int32 in PSUM goes through float32", f"p = psum(x.shape, nl.int32)\nnisa.tensor_copy(p, x)\n{BITS}\n"
             f"{one}(o, p, y, nl.add)",
             np.clip(WHOLE.astype(np.float32) + np.float32(1), -(2.0**31),
             2.0**31 - 1).astype(np.int64).astype(np.int32),
             WHOLE, np.ones_like(WHOLE)),
            ("the number of elements counts", f"o = sbuf((32, 8, 8))\n{one}(o, x, y.reshape((32, 4, 16)), nl.add)",
             (X + Y).reshape(32, 8, 8), X, Y),
        ),
        *forbidden(
            one, OUT,
            ("as many partitions", f"{one}(o, x, y[0:16], nl.add)"),
            ("as many elements", f"{one}(o, x, y[:, 0:1], nl.add)"),
            ("a whole result", f"{one}(o[:, 0:32], x, y, nl.add)"),
            ("no division", f"{one}(o, x, y, nl.divide)"),
            ("no remainder", f"{one}(o, x, y, nl.mod)"),
            ("no ScalarE", f"{one}(o, x, y, nl.add, engine=nisa.engine.scalar)"),
            ("no TensorE", f"{one}(o, x, y, nl.add, engine=nisa.engine.tensor)"),
            ("GpSimdE does not read PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n"
             f"{one}(o, p, y, nl.add, engine=nisa.engine.gpsimd)"),
            ("power does not read PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n{one}(o, p, y, nl.power)"),
            ("power does not write PSUM", f"p = psum(x.shape)\n{one}(p, x, y, nl.power)"),
            ("not from HBM", f"{one}(o, x, b, nl.add)"),
            ("not to HBM", f"h = hbm(x.shape)\n{one}(h, x, y, nl.add)"),
            ("bits of whole numbers", f"w = sbuf(x.shape, nl.int32)\nnisa.tensor_copy(w, x)\n"
             f"{one}(o, w, w, nl.bitwise_and)"),
            ("two operands", f"{one}(o, x, 2.0, nl.add)"),
            ("abs_max needs trn3", f"{one}(o, x, y, nl.abs_max)"),
        ),
    ]  # fmt: skip


def _scalars() -> list[PageRule]:
    one, positive = "nisa.tensor_scalar", np.abs(X) + np.float32(0.1)
    return [
        *page(one, *((name, f"{OUT}\n{one}(o, x, nl.{name}, 1.0)", f(SIGNS, np.float32(1)).astype(np.float32), SIGNS)
                     for name, f in ARITHMETIC.items())),
        *page(one, *((name, f"{BITS}\n{one}(o, x, nl.{name}, 5)", f(WHOLE, np.int32(5)), WHOLE)
                     for name, f in BITVEC.items())),
        *page(
            one,
            ("power", f"{OUT}\n{one}(o, x, nl.power, 1.5)", positive**1.5, positive),
            ("two vectors", f"{OUT}\n{one}(o, x, nl.multiply, y, op1=nl.add, operand1=y)", X * COLUMN + COLUMN, X,
             COLUMN),
            ("the second reversed", f"{OUT}\n"
             f"{one}(o, x, nl.multiply, 2.0, op1=nl.subtract, operand1=1.0, reverse1=True)",
             1 - X * 2, X),
            ("two operations on bits", f"{BITS}\n{one}(o, x, nl.bitwise_and, 255, op1=nl.left_shift, operand1=2)",
             (WHOLE & 255) << 2, WHOLE),
            ("bits of a vector", f"{BITS}\n{one}(o, x, nl.bitwise_xor, y[:, 0:1])", WHOLE ^ SHIFTS[:, :1], WHOLE,
             SHIFTS),
            ("a vector in PSUM", f"p = psum((32, 1))\nnisa.tensor_copy(p, y)\n{OUT}\n{one}(o, x, nl.add, p)",
             X + COLUMN, X,
             COLUMN),
            ("into another type", f"{BITS}\n{one}(o, x, nl.multiply, 2.0)", np.rint(X * 2).astype(np.int32), X),
            *((f"ScalarE: {text}", f"{OUT}\n{one}(o, x, {call}, engine=nisa.engine.scalar)", value, X) for text, call,
             value in (
                ("multiply, add", "nl.multiply, 2.0, op1=nl.add, operand1=1.0", X * 2 + 1),
                ("multiply", "nl.multiply, 2.0", X * 2), ("add", "nl.add, 2.0", X + 2))),
            ("GpSimdE: rsqrt", f"{OUT}\n{one}(o, x, nl.rsqrt, 0.0, engine=nisa.engine.gpsimd)", 1 / np.sqrt(positive),
             positive),
        ),
        *forbidden(
            one, OUT,
            ("operands are float32", f"n = sbuf((32, 1), nl.bfloat16)\nnisa.memset(n, 1.0)\n{one}(o, x, nl.add, n)"),
            ("the second operand is float32", f"n = sbuf((32, 1), nl.bfloat16)\nnisa.memset(n, 1.0)\n"
             f"{one}(o, x, nl.add, 1.0, op1=nl.add, operand1=n)"),
            ("an operand is a column", f"{one}(o, x, nl.add, y)", X, BAD),
            ("an operand has the partitions of data", f"{one}(o, x, nl.add, y[0:16])", X, COLUMN),
            ("an operand without its operation", f"{one}(o, x, nl.add, 1.0, operand1=1.0)"),
            ("an operation without its operand", f"{one}(o, x, nl.add, 1.0, op1=nl.multiply)"),
            ("no operand", f"{one}(o, x, nl.add, None)"),
            *((f"ScalarE of trn2: not {a}, {b}",
               f"{one}(o, x, nl.{a}, 1.0, op1=nl.{b}, operand1=1.0, engine=nisa.engine.scalar)")
              for a, b in (("multiply", "multiply"), ("add", "add"), ("add", "multiply"), ("multiply", "subtract"))),
            ("ScalarE of trn2: not maximum", f"{one}(o, x, nl.maximum, 1.0, engine=nisa.engine.scalar)"),
            ("no TensorE", f"{one}(o, x, nl.add, 1.0, engine=nisa.engine.tensor)"),
            ("as many partitions", f"{one}(o[0:16], x, nl.add, 1.0)"),
            ("as many elements", f"{one}(o[:, 0:32], x, nl.add, 1.0)"),
            ("not from HBM", f"{one}(o, a, nl.add, 1.0)"),
            ("a unary operation has no vector", f"{one}(o, x, nl.rsqrt, y)", X, COLUMN),
            ("a second unary operation has no operand", f"{one}(o, x, nl.add, 1.0, op1=nl.abs, operand1=2.0)"),
            ("relu needs trn3", f"{one}(o, x, nl.relu, None)"),
            ("exp is no operator", f"{one}(o, x, nl.exp, None)"),
            ("bits on ScalarE", f"w = sbuf(x.shape, nl.int32)\nnisa.tensor_copy(w, x)\n"
             f"{one}(w, w, nl.bitwise_and, 1, engine=nisa.engine.scalar)"),
        ),
    ]  # fmt: skip


def _two_steps() -> list[PageRule]:
    """nki.isa.scalar_tensor_tensor, tensor_tensor_scan."""
    one, scan = "nisa.scalar_tensor_tensor", "nisa.tensor_tensor_scan"
    scanned, reversed_scan = np.empty_like(X), np.empty_like(X)
    state, other = np.full(32, 0.5, np.float32), np.full(32, 0.5, np.float32)
    for i in range(64):
        state = scanned[:, i] = X[:, i] * state + Y[:, i]
        other = reversed_scan[:, i] = Y[:, i] - (other - X[:, i])
    start = np.empty_like(X)
    state = COLUMN[:, 0]
    for i in range(64):
        state = start[:, i] = np.maximum(X[:, i] * np.float32(0) + state, Y[:, i])
    return [
        *page(
            one,
            ("a number", f"{OUT}\n{one}(o, x, nl.multiply, 2.0, nl.subtract, y)", X * 2 - Y, X, Y),
            ("both reversed", f"{OUT}\n{one}(o, x, nl.subtract, 2.0, nl.subtract, y, True, True)", Y - (2 - X), X, Y),
            ("a vector", f"{OUT}\n{one}(o, x, nl.add, z, nl.maximum, y)", np.maximum(X + COLUMN, Y), X, Y, COLUMN),
        ),
        *forbidden(
            one, OUT,
            ("a second operand with the elements of data", f"{one}(o, x, nl.add, 1.0, nl.add, y[:, 0:1])"),
            ("a second operand that is a tensor", f"{one}(o, x, nl.add, 1.0, nl.add, 1.0)"),
            ("a first operand that is a column", f"{one}(o, x, nl.add, y, nl.add, x)"),
            ("both in PSUM", f"{TWO_IN_PSUM}\n{one}(o, p, nl.add, 1.0, nl.add, q)"),
            ("no division", f"{one}(o, x, nl.divide, 2.0, nl.add, y)"),
            ("as many partitions", f"{one}(o, x, nl.add, 1.0, nl.add, y[0:16])"),
            ("no bits in the second", f"w = sbuf(x.shape, nl.int32)\nnisa.tensor_copy(w, x)\n"
             f"{one}(w, w, nl.add, 1.0, nl.bitwise_or, w)"),
        ),
        *page(
            scan,
            ("from a number", f"{OUT}\n{scan}(o, x, y, 0.5, nl.multiply, nl.add)", scanned, X, Y),
            ("both reversed", f"{OUT}\n{scan}(o, x, y, 0.5, nl.subtract, nl.subtract, True, True)", reversed_scan, X,
             Y),
            ("from a vector", f"{OUT}\nw = sbuf(x.shape)\nnisa.memset(w, 0.0)\n{scan}(o, w, y, z, nl.add, nl.maximum)",
             start, X, Y, COLUMN),
            ("one in PSUM", f"p = psum(y.shape)\nnisa.tensor_copy(p, y)\n{OUT}\n"
             f"{scan}(o, x, p, 0.5, nl.multiply, nl.add)",
             scanned, X, Y),
        ),
        *forbidden(
            scan, OUT,
            ("as many elements", f"{scan}(o, x, y[:, 0:32], 0.0, nl.multiply, nl.add)"),
            ("as many partitions", f"{scan}(o, x, y[0:16], 0.0, nl.multiply, nl.add)"),
            ("both in PSUM", f"{TWO_IN_PSUM}\n{scan}(o, p, q, 0.0, nl.multiply, nl.add)"),
            ("a start that is a column", f"{scan}(o, x, y, y[:, 0:2], nl.multiply, nl.add)"),
            ("no operations on bits", f"w = sbuf(x.shape, nl.int32)\nnisa.tensor_copy(w, x)\n"
             f"{scan}(w, w, w, 0, nl.bitwise_or, nl.bitwise_or)"),
            ("no unary operations", f"{scan}(o, x, y, 0.0, nl.abs, nl.add)"),
            ("no division", f"{scan}(o, x, y, 0.0, nl.divide, nl.add)"),
            ("not from HBM", f"{scan}(o, x, b, 0.0, nl.multiply, nl.add)"),
        ),
    ]  # fmt: skip


def _registers() -> list[PageRule]:
    """nki.isa.tensor_scalar_reduce, tensor_scalar_cumulative and their registers."""
    one, sums = "nisa.tensor_scalar_reduce", "nisa.tensor_scalar_cumulative"
    total = (X + 1).sum(1, keepdims=True)
    add = f"{one}(o, x, nl.add, 1.0, nl.add, {{}})"
    doubled = 2 * X.astype(np.float64)
    alternating = np.empty_like(doubled)
    state = np.zeros(32)
    for i in range(64):
        state = alternating[:, i] = doubled[:, i] - state
    return [
        *page(
            one,
            *((f"{name} from its identity", f"{RESULT}\n{one}(o, x, nl.multiply, 2.0, nl.{name}, r)\no = r",
               f.reduce(2 * X, axis=1)[:, None]) for name, f in
              (("add", np.add), ("multiply", np.multiply), ("maximum", np.maximum), ("minimum", np.minimum))),
            ("goes on", f"{RESULT}\n{add.format('None')}\n{add.format('r, reduce_cmd=nisa.reduce_cmd.reduce')}\no = r",
             2 * total),
            ("loads", f"{RESULT}\n{add.format('r, reduce_cmd=nisa.reduce_cmd.load_reduce, reduce_init=5.0')}\no = r",
             5 + total),
            ("negated on its way out", f"{RESULT}\n{add.format('r, reduce_res_negate=True')}\n"
             f"{add.format('r, reduce_cmd=nisa.reduce_cmd.reduce')}\no = r", 2 * total),
            ("negated", f"{RESULT}\n{add.format('r, reduce_res_negate=True')}\no = r", -total),
            ("its elements", f"{RESULT}\n{add.format('r')}", X + 1),
            inputs=(X,),
        ),
        *forbidden(
            one, RESULT,
            ("loads a value", add.format("r, reduce_cmd=nisa.reduce_cmd.load_reduce")),
            ("a value only loads", add.format("r, reduce_init=5.0")),
            ("does not idle", add.format("r, reduce_cmd=nisa.reduce_cmd.idle")),
            ("does not subtract", add.replace("nl.add, {}", "nl.subtract, r")),
            ("is not reversed yet", add.format("r, reverse0=True")),
            ("reduces to a column", add.format("y"), X, BAD),
            ("no operand of another type", f"n = sbuf((32, 1), nl.bfloat16)\nnisa.memset(n, 1.0)\n"
             f"{one}(o, x, nl.add, n, nl.add, r)"),
            ("as many elements", f"{one}(o[:, 0:32], x, nl.add, 1.0, nl.add, r)"),
        ),
        *page(
            sums,
            ("add", f"{OUT}\n{sums}(o, x, nl.multiply, nl.add, 2.0)", np.cumsum(doubled, 1)),
            ("subtract", f"{OUT}\n{sums}(o, x, nl.multiply, nl.subtract, 2.0)", alternating),
            ("multiply", f"{OUT}\n{sums}(o, x, nl.multiply, nl.multiply, 1.0)", np.cumprod(X, 1)),
            ("maximum", f"{OUT}\n{sums}(o, x, nl.multiply, nl.maximum, 2.0)", np.maximum.accumulate(2 * X, 1)),
            ("minimum", f"{OUT}\n{sums}(o, x, nl.multiply, nl.minimum, 2.0)", np.minimum.accumulate(2 * X, 1)),
            ("loads", f"{OUT}\n{sums}(o, x, nl.multiply, nl.add, 2.0, 5.0, nisa.reduce_cmd.load_reduce)",
             5 + np.cumsum(doubled, 1)),
            ("goes on", f"{OUT}\n{sums}(o, x, nl.multiply, nl.add, 2.0)\n"
             f"{sums}(o, x, nl.multiply, nl.add, 2.0, reduce_cmd=nisa.reduce_cmd.reduce)",
             doubled.sum(1, keepdims=True) + np.cumsum(doubled, 1)),
            ("shares registers", f"{RESULT}\n{one}(o, x, nl.multiply, 2.0, nl.add)\n"
             f"{sums}(o, x, nl.multiply, nl.add, 2.0, reduce_cmd=nisa.reduce_cmd.reduce)",
             doubled.sum(1, keepdims=True) + np.cumsum(doubled, 1)),
            inputs=(X,),
        ),
        *forbidden(
            sums, OUT,
            ("loads a value", f"{sums}(o, x, nl.multiply, nl.add, 2.0, reduce_cmd=nisa.reduce_cmd.load_reduce)"),
            ("no power", f"{sums}(o, x, nl.multiply, nl.power, 2.0)"),
            ("no bits", f"w = sbuf(x.shape, nl.int16)\nnisa.memset(w, 1)\n{sums}(w, w, nl.bitwise_and, nl.add, 1)"),
            ("a float32 operand", f"n = sbuf((32, 1), nl.bfloat16)\nnisa.memset(n, 1.0)\n"
             f"{sums}(o, x, nl.multiply, nl.add, n)"),
            ("a column", f"{sums}(o, x, nl.multiply, nl.add, y)", X, BAD),
            ("uint32 is not written", f"w = sbuf(x.shape, nl.uint32)\n{sums}(w, x, nl.multiply, nl.add, 2.0)"),
            ("as many elements", f"{sums}(o[:, 0:32], x, nl.multiply, nl.add, 2.0)"),
        ),
    ]  # fmt: skip


def _reductions() -> list[PageRule]:
    """nki.isa.tensor_reduce, tensor_partition_reduce, bn_stats, bn_aggr."""
    one, across, column, row = (
        "nisa.tensor_reduce",
        "nisa.tensor_partition_reduce",
        "o = sbuf((32, 1))",
        "o = sbuf((1, 64))",
    )
    cube = X.reshape(32, 4, 4, 4)
    even, odd = X[:, ::2].astype(np.float64), X[:, 1::2].astype(np.float64)
    count = np.full((32, 1), 32.0)
    statistics = np.hstack(
        [
            count,
            even.mean(1, keepdims=True),
            even.var(1, keepdims=True) * 32,
            count,
            odd.mean(1, keepdims=True),
            odd.var(1, keepdims=True) * 32,
        ]
    )
    both = np.hstack([X, 2 * Y]).astype(np.float64)
    wide = np.linspace(0, 1, 32 * 513, dtype=np.float32).reshape(32, 513)
    return [
        *page(
            one,
            *((name, f"{column}\n{one}(o, nl.{name}, x, axis=1)", f.reduce(X, axis=1)[:, None].astype(np.float32))
              for name, f in ARITHMETIC.items() if name in
              ("add", "subtract", "maximum", "minimum", "logical_and", "logical_or")),
            ("two dimensions", f"o = sbuf((32, 4))\n{one}(o, nl.add, x.reshape((32, 4, 4, 4)), axis=(2, 3))",
             cube.sum((2, 3))),
            ("all free dimensions", f"{column}\n{one}(o, nl.add, x.reshape((32, 4, 4, 4)), axis=[1, 2, 3])",
             X.sum(1, keepdims=True)),
            ("keepdims", f"o = sbuf((32, 4, 1, 1))\n"
             f"{one}(o, nl.add, x.reshape((32, 4, 4, 4)), axis=(2, 3), keepdims=True)",
             cube.sum((2, 3), keepdims=True)),
            ("to PSUM", f"p = psum((32, 1))\n{one}(p, nl.add, x, axis=1)\n{column}\nnisa.tensor_copy(o, p)",
             X.sum(1, keepdims=True)),
            inputs=(X,),
        ),
        *forbidden(
            one, column,
            ("the last dimension is among them", f"{one}(o, nl.add, x.reshape((32, 4, 4, 4)), axis=(1, 2))"),
            ("contiguous dimensions", f"{one}(o, nl.add, x.reshape((32, 4, 4, 4)), axis=(1, 3))"),
            ("no such dimension", f"{one}(o, nl.add, x, axis=2)"),
            ("as many results", f"w = sbuf((32, 2))\n{one}(w, nl.add, x, axis=1)"),
            ("as many partitions", f"{one}(o[0:16], nl.add, x, axis=1)"),
            ("no comparisons", f"{one}(o, nl.equal, x, axis=1)"),
            ("no shifts", f"w = sbuf((32, 1), nl.int32)\n{one}(w, nl.left_shift, x, axis=1)", WHOLE),
            ("bits are not negated", f"w = sbuf((32, 1), nl.int32)\n{one}(w, nl.bitwise_or, x, axis=1, negate=True)",
             WHOLE),
            ("not from HBM", f"{one}(o, nl.add, a, axis=1)"),
        ),
        *page(across, ("add", f"{row}\n{across}(o, nl.add, x)", X.sum(0, keepdims=True), X),
              ("maximum", f"{row}\n{across}(o, nl.maximum, x)", X.max(0, keepdims=True), X),
              ("bitwise_and", f"o = sbuf((1, 16), nl.int32)\n{across}(o, nl.bitwise_and, x)",
               np.bitwise_and.reduce(WHOLE, axis=0)[None], WHOLE)),
        *forbidden(across, row, ("no minimum", f"{across}(o, nl.minimum, x)"), ("one partition",
         f"{across}(x, nl.add, x)"),
                   ("GpSimdE does not read PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n{across}(o, nl.add, p)"),
                   ("as many elements", f"{across}(o[:, 0:32], nl.add, x)"),
                   ("not from HBM", f"{across}(o, nl.add, a)")),
        *page("nisa.bn_stats", ("six values", "o = sbuf((32, 6))\nnisa.bn_stats(o, x)", statistics, X),
              ("512 elements", "o = sbuf((32, 6))\nnisa.bn_stats(o, x[:, 0:512])\nm = sbuf((32, 2))\n"
               "nisa.bn_aggr(m, o)\no = m",
               np.hstack([wide[:, :512].mean(1, keepdims=True), wide[:, :512].var(1, keepdims=True)]), wide)),
        *forbidden("nisa.bn_stats", "o = sbuf((32, 6))", ("513 elements", "nisa.bn_stats(o, x)", wide),
                   ("six columns", "nisa.bn_stats(o[:, 0:5], x)"), ("as many partitions", "nisa.bn_stats(o[0:16], x)"),
                   ("not from HBM", "nisa.bn_stats(o, a)")),
        *page("nisa.bn_aggr", ("of several", "s = sbuf((32, 12))\nnisa.bn_stats(s[:, 0:6], x)\n"
         "nisa.bn_stats(s[:, 6:12], y)\n"
              "o = sbuf((32, 2))\nnisa.bn_aggr(o, s)", np.hstack([both.mean(1, keepdims=True), both.var(1,
              keepdims=True)]), X,
              2 * Y)),
        *forbidden("nisa.bn_aggr", "o = sbuf((32, 2))", ("triples", "nisa.bn_aggr(o, x[:, 0:4])"),
                   ("as many partitions", "nisa.bn_aggr(o[0:16], x[:, 0:6])")),
    ]  # fmt: skip


RULES = (*_pairs(), *_scalars(), *_two_steps(), *_registers(), *_reductions())
