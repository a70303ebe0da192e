"""nki.isa: patterns, searches, selections, gathers and shuffles."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import (
    COLUMN,
    EIGHTS,
    LEAST,
    RNG,
    TIES,
    Array,
    PageRule,
    X,
    forbidden,
    page,
)  # fmt: skip

OUT, RESULT = "o = sbuf(x.shape)", "o = sbuf(x.shape)\nr = sbuf((32, 1))"
TRUTH = (X > 0).astype(np.uint8)
BAD = np.ones((32, 2), np.float32)
PLACES = RNG.integers(0, 64, (32, 8)).astype(np.uint32)
WIDE = RNG.standard_normal((8, 16385), dtype=np.float32)
MANY = RNG.standard_normal((128, 16), dtype=np.float32)


def _pattern(*steps: tuple[int, int], offset: int = 0, channel: int = 0) -> Array:
    """The pseudo code of nki.isa.iota, for 32 partitions."""
    value: Array = np.int64(offset) + np.arange(32)[:, None] * channel
    for step, size in steps:
        value = (value[..., None] + np.arange(size) * step).reshape(32, -1)
    return value.astype(np.int32)


def _patterns() -> list[PageRule]:
    """nki.isa.iota, affine_select."""
    one, select, bits = "nisa.iota", "nisa.affine_select", "o = sbuf((32, 16), nl.int32)"
    causal = np.where(_pattern((-1, 64), channel=1) >= 0, X, np.float32(-9984))
    compare = {
        "equal": np.equal,
        "not_equal": np.not_equal,
        "greater": np.greater,
        "greater_equal": np.greater_equal,
        "less": np.less,
        "less_equal": np.less_equal,
    }
    return [
        *page(
            one,
            ("one dimension", f"{bits}\n{one}(o, [[3, 16]], 5, 100)", _pattern((3, 16), offset=5, channel=100)),
            ("four dimensions", f"{bits}\n{one}(o, [[1, 2], [-10, 2], [100, 2], [7, 2]], -3, 2)",
             _pattern((1, 2), (-10, 2), (100, 2), (7, 2), offset=-3, channel=2)),
            ("into float32", f"o = sbuf((32, 16))\n{one}(o, [[1, 16]])", _pattern((1, 16)).astype(np.float32)),
            ("the number of elements counts", f"o = sbuf((32, 4, 4), nl.int32)\n{one}(o, [[1, 16]])",
             _pattern((1, 16)).reshape(32, 4, 4)),
            inputs=(X,),
        ),
        *forbidden(
            one, bits,
            ("as many elements", f"{one}(o, [[1, 15]])"),
            ("whole steps", f"{one}(o, [[1.5, 16]])"),
            ("whole offsets", f"{one}(o, [[1, 16]], 0.5)"),
            ("not HBM", f"h = hbm((32, 16), nl.int32)\n{one}(h, [[1, 16]])"),
        ),
        *page(
            select,
            ("a causal mask", f"{OUT}\n{select}(o, [[-1, 64]], 1, x, -9984.0, nl.greater_equal)", causal, X),
            *((name, f"{OUT}\n{select}(o, [[-1, 64]], 1, x, 0.0, nl.{name}, offset=3)",
               np.where(f(_pattern((-1, 64), offset=3, channel=1), 0), X, 0).astype(np.float32), X)
              for name, f in compare.items()),
            ("equal by default", f"{OUT}\n{select}(o, [[-1, 64]], 1, x, 0.0)",
             np.where(_pattern((-1, 64), channel=1) == 0, X, 0).astype(np.float32), X),
        ),
        *forbidden(
            select, OUT,
            ("as many elements as the pattern", f"{select}(o, [[-1, 63]], 1, x, 0.0)"),
            ("as many elements as the tile", f"{select}(o, [[-1, 64]], 1, x[:, 0:32], 0.0)"),
            ("as many partitions", f"{select}(o, [[-1, 64]], 1, x[0:16], 0.0)"),
            ("a comparison", f"{select}(o, [[-1, 64]], 1, x, 0.0, nl.add)"),
            ("the other value is a number", f"{select}(o, [[-1, 64]], 1, x, y)"),
            ("not from PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n{select}(o, [[-1, 64]], 1, p, 0.0)"),
            ("not to PSUM", f"p = psum(x.shape)\n{select}(p, [[-1, 64]], 1, x, 0.0)"),
            ("four dimensions", f"{select}(o, [[1, 2], [1, 2], [1, 2], [1, 2], [1, 4]], 1, x, 0.0)"),
            ("a multiplier", "nisa.affine_select(o, [[-1, 64]], on_true_tile=x, on_false_value=0.0)"),
        ),
    ]  # fmt: skip


def _searches() -> list[PageRule]:
    """nki.isa.max8, nc_find_index8, nc_match_replace8, topk."""
    one, find, match = "nisa.max8", "nisa.nc_find_index8", "nisa.nc_match_replace8"
    eight, places = "o = sbuf((32, 8))", "o = sbuf((32, 8), nl.uint32)"
    wide = "o = sbuf((8, 8))"
    return [
        *page(
            one,
            ("three dimensions", f"{eight}\n{one}(o, x.reshape((32, 8, 8)))", -np.sort(-X, 1)[:, :8], X),
            ("8 elements", f"{eight}\n{one}(o, x[:, 0:8])", -np.sort(-X[:, :8], 1), X),
            ("16,384 elements", f"{wide}\n{one}(o, x[:, 0:16384])", -np.sort(-WIDE[:, :16384], 1)[:, :8], WIDE),
            ("equal values", f"{eight}\n{one}(o, x)", -np.sort(-TIES, 1)[:, :8], TIES),
        ),
        *forbidden(
            one, eight,
            ("7 elements", f"{one}(o, x[:, 0:7])"),
            ("16,385 elements", f"p = sbuf((8, 8))\n{one}(p, x)", WIDE),
            ("eight results", f"q = sbuf((32, 9))\n{one}(q, x)"),
            ("two dimensions", f"{one}(o.reshape((32, 2, 4)), x)"),
            ("three dimensions", f"{one}(o, x.reshape((32, 4, 4, 4)))"),
            ("as many partitions", f"{one}(o[0:16], x)"),
            ("not from HBM", f"{one}(o, a)"),
        ),
        *forbidden(
            find, places,
            ("7 elements", f"{find}(o, x[:, 0:7], y[:, 0:8])"),
            ("16,385 elements", f"p = sbuf((8, 8), nl.uint32)\nnisa.max8(q := sbuf((8, 8)), x[:, 0:16])\n"
             f"{find}(p, x, q)", WIDE),
            ("eight values", f"{find}(o, x, y[:, 0:7])"),
            ("eight results", f"q = sbuf((32, 9), nl.uint32)\n{find}(q, x, y[:, 0:8])"),
            ("three dimensions", f"{find}(o, x.reshape((32, 4, 4, 4)), y[:, 0:8])"),
            ("as many partitions", f"{find}(o, x, y[0:16, 0:8])"),
            ("int32 is not written", f"q = sbuf((32, 8), nl.int32)\n{find}(q, x, y[:, 0:8])"),
        ),
        *page(match, ("the example of the page", f"o = sbuf((32, 8), nl.uint32)\nd = sbuf(x.shape)\n"
         f"{match}(d, x, y, 0.0, dst_idx=o)",
              np.array([[2, 10, 9, 8, 7, 6, 5, 4]], np.uint32).repeat(32, 0), TIES[:, :11].copy(), EIGHTS)),
        *forbidden(
            match, OUT,
            ("eight values", f"{match}(o, x, y[:, 0:7], 0.0)"),
            ("as many elements", f"{match}(o[:, 0:32], x, y[:, 0:8], 0.0)"),
            ("eight indices", f"i = sbuf((32, 7), nl.uint32)\n{match}(o, x, y[:, 0:8], 0.0, dst_idx=i)"),
            ("a number", f"{match}(o, x, y[:, 0:8], y[:, 0:1])"),
        ),
    ]  # fmt: skip


def _topk() -> list[PageRule]:
    """nki.isa.topk: elements 0..15 fill partitions 0..15 of column 0. What it writes is a snake too (nki-lib's
    gpsimd_topk, notes)."""
    one, n = "nisa.topk", 42
    snake = RNG.permutation(16 * 3).astype(np.float32).reshape(1, 48) - np.float32(24)
    source = (
        np.hstack([s.reshape(3, 16).T for s in (snake, -snake)])
        .reshape(16, 2, 3)
        .transpose(1, 0, 2)
        .reshape(32, 3)
    )
    order = [np.argsort(s[0, :n], kind="stable")[-16:] for s in (snake, -snake)]
    index = np.concatenate([o[:, None] for o in order]).astype(np.uint32)
    value = np.concatenate([s[0, o][:, None] for s, o in zip((snake, -snake), order, strict=True)])
    head = (
        "s = sbuf(x.shape, nl.bfloat16)\nnisa.tensor_copy(s, x)\nv = sbuf((32, 16), nl.bfloat16)\n"
        "i = sbuf((32, 16), nl.uint32)"
    )
    rest: tuple[Array, ...] = (source.astype(np.float32),)
    return [
        *page(one, ("indices", f"{head}\n{one}(v, i, s, 42)\no = sbuf((32, 1), nl.uint32)\n"
         f"nisa.tensor_copy(o, i[:, 0:1])", index),
              ("ascending values", f"{head}\n{one}(v, i, s, 42)\no = sbuf((32, 1))\nnisa.tensor_copy(o, v[:, 0:1])",
               value.astype(np.float32)), inputs=rest),
        *forbidden(
            one, f"{head}\no = x",
            ("the source is bfloat16", f"{one}(v, i, x, 42)"),
            ("values are bfloat16", f"w = sbuf((32, 16))\n{one}(w, i, s, 42)"),
            ("indices are uint32", f"w = sbuf((32, 16), nl.int32)\n{one}(v, w, s, 42)"),
            ("n is at least 8", f"{one}(v[:, 0:4], i[:, 0:4], s, 7)"),
            ("n is under 65,536", f"{one}(v, i, s, 65536)"),
            ("n fits the source", f"{one}(v, i, s, 49)"),
            ("K is at most n", f"{one}(v, i, s, 15)"),
            ("as many values as indices", f"{one}(v[:, 0:8], i, s, 42)"),
            ("groups of 16 partitions", f"{one}(v[0:24], i[0:24], s[0:24], 42)"),
            ("not PSUM", f"p = psum((32, 3), nl.bfloat16)\nnisa.tensor_copy(p, s)\n{one}(v, i, p, 42)"),
            inputs=rest,
        ),
    ]  # fmt: skip


def _selections() -> list[PageRule]:
    one, ranged = "nisa.select_reduce", "nisa.range_select"
    chosen, other = np.where(TRUTH, X, -2), np.where(TRUTH, X, COLUMN)
    reduced = "reduce_res=r, reduce_cmd=nisa.reduce_cmd."
    bounds = "lo = sbuf((32, 1))\nhi = sbuf((32, 1))\nnisa.memset(lo, 3.0)\nnisa.memset(hi, 9.0)"
    ops = "nl.greater_equal, nl.less, lo, hi"
    inside = np.where((np.arange(64) >= 3) & (np.arange(64) < 9), X, LEAST)
    later = np.where((np.arange(64) + 2 >= 3) & (np.arange(64) + 2 < 9), X, LEAST)
    half = np.maximum(inside.max(1, keepdims=True), inside.max(1, keepdims=True))
    return [
        *page(
            one,
            *((f"{kind} predicates", f"{OUT}\n{one}(o, y, x, -2.0)", chosen, X, TRUTH.astype(kind))
              for kind in ("int8", "int16", "uint16")),
            ("a vector", f"{OUT}\n{one}(o, y, x, z)", other, X, TRUTH, COLUMN),
            ("reversed", f"{OUT}\n{one}(o, y, x, -2.0, reverse_pred=True)", np.where(TRUTH, -2, X), X, TRUTH),
            ("registers go on", f"{RESULT}\n{one}(o, y, x, 9.0, reduce_cmd=nisa.reduce_cmd.reset_reduce)\n"
             f"{one}(o, y, x, -2.0, {reduced}reduce)\no = r", np.maximum(np.where(TRUTH, X, 9), chosen).max(1,
             keepdims=True),
             X, TRUTH),
            ("ranks may differ", f"{OUT}\n{one}(o.reshape((32, 8, 8)), y.reshape((32, 8, 8)), x, -2.0)", chosen, X,
             TRUTH),
        ),
        *forbidden(
            one, RESULT,
            ("uint32 predicates", f"{one}(o, y, x, -2.0)", X, TRUTH.astype(np.uint32)),
            ("int32 predicates", f"{one}(o, y, x, -2.0)", X, TRUTH.astype(np.int32)),
            ("no int32", f"w = sbuf(x.shape, nl.int32)\nnisa.tensor_copy(w, x)\n{one}(w, y, w, -2.0)"),
            ("no uint32", f"w = sbuf(x.shape, nl.uint32)\nnisa.tensor_copy(w, x)\n{one}(o, y, w, -2.0)"),
            ("no tfloat32", f"w = sbuf(x.shape, nl.tfloat32)\nnisa.tensor_copy(w, x)\n{one}(o, y, w, -2.0)"),
            ("reduces to a column", f"q = sbuf((32, 2))\n{one}(o, y, x, -2.0, reduce_res=q, "
             "reduce_cmd=nisa.reduce_cmd.reset_reduce)"),
            ("reduces to floating point", f"q = sbuf((32, 1), nl.int32)\n{one}(o, y, x, -2.0, reduce_res=q, "
             "reduce_cmd=nisa.reduce_cmd.reset_reduce)"),
            ("a maximum alone", f"{one}(o, y, x, -2.0, {reduced}reset_reduce, reduce_op=nl.add)"),
            ("loads nothing", f"{one}(o, y, x, -2.0, {reduced}load_reduce)"),
            ("a vector is a column", f"{one}(o, y, x, x[:, 0:2])"),
            ("as many elements", f"{one}(o, y[:, 0:32], x, -2.0)"),
            ("both in PSUM", f"p = psum(x.shape)\nq = psum(x.shape, nl.uint16)\nnisa.tensor_copy(p, x)\n"
             f"nisa.tensor_copy(q, y)\n{one}(o, q, p, -2.0)"),
            inputs=(X, TRUTH),
        ),
        *page(
            ranged,
            ("positions from a start", f"{bounds}\n{OUT}\n{ranged}(o, x, {ops}, range_start=2)", later),
            ("the least float32 is allowed", f"{bounds}\n{OUT}\n{ranged}(o, x, {ops}, on_false_value=-3.4028235e+38)",
             inside),
            ("registers go on", f"{bounds}\n{RESULT}\n{ranged}(o, x, {ops})\nnisa.memset(lo, 5.0)\n"
             f"{ranged}(o, x, {ops}, reduce_res=r, reduce_cmd=nisa.reduce_cmd.reduce)\no = r", half),
            ("equal", f"{bounds}\n{OUT}\n{ranged}(o, x, nl.equal, nl.less_equal, lo, hi)",
             np.where(np.arange(64) == 3, X, LEAST)),
            ("nothing in bfloat16 is -inf", f"{bounds}\nnisa.memset(hi, 3.0)\nn = sbuf(x.shape, nl.bfloat16)\n"
             f"{ranged}(n, x, {ops})\n{OUT}\nnisa.tensor_copy(o, n)", np.full_like(X, -np.inf)),
            inputs=(X,),
        ),
        *forbidden(
            ranged, f"{bounds}\n{RESULT}",
            ("another value", f"{ranged}(o, x, {ops}, on_false_value=0.0)"),
            ("a maximum alone", f"{ranged}(o, x, {ops}, reduce_res=r, reduce_op=nl.add)"),
            ("floating point", f"w = sbuf(x.shape, nl.int32)\nnisa.tensor_copy(w, x)\n{ranged}(o, w, {ops})"),
            ("float32 bounds", f"n = sbuf((32, 1), nl.bfloat16)\nnisa.memset(n, 1.0)\n"
             f"{ranged}(o, x, nl.greater_equal, nl.less, n, hi)"),
            ("bounds are columns", f"{ranged}(o, x, nl.greater_equal, nl.less, y, hi)", X, BAD),
            ("bounds have the partitions", f"{ranged}(o, x, nl.greater_equal, nl.less, lo[0:16], hi)"),
            ("whole starts", f"{ranged}(o, x, {ops}, range_start=0.5)"),
            ("starts within 2^24", f"{ranged}(o, x, {ops}, range_start=2**24)"),
            ("reduces to a column", f"q = sbuf((32, 2))\n{ranged}(o, x, {ops}, reduce_res=q)"),
            ("as many elements", f"{ranged}(o[:, 0:32], x, {ops})"),
        ),
    ]  # fmt: skip


def _segments() -> list[PageRule]:
    """nki.isa.sequence_bounds, nonzero_with_count."""
    one, count = "nisa.sequence_bounds", "nisa.nonzero_with_count"
    ids = np.array([[1, 1, 1, 2, 2, 0, 0, 5]], np.float32)
    ends = np.array([[[0, 0, 0, 3, 3, 8, 8, 7], [3, 3, 3, 5, 5, -1, -1, 8]]], np.float32)
    flags = np.zeros((32, 8), np.int32)
    flags[0] = flags[16] = [0, 1, 1, 0, 0, 1, 0, 0]
    flags[16, 7] = 1
    counted = np.full((32, 9), 4, np.int32)
    counted[0], counted[16] = [17, 18, 21, -1, -1, -1, -1, -1, 3], [17, 18, 21, 23, -1, -1, -1, -1, 4]
    nine = "o = sbuf((32, 9), nl.int32)\nnisa.memset(o, 4)"
    return [
        *page(one, ("starts and ends", f"o = sbuf((1, 2, 8))\n{one}(o, x)", ends, ids),
              ("int32", f"o = sbuf((1, 2, 8), nl.int32)\n{one}(o, x)", ends.astype(np.int32), ids.astype(np.int32))),
        *forbidden(one, "o = sbuf((1, 2, 8))", ("one partition", f"p = sbuf((2, 2, 8))\n{one}(p, x)", ids.repeat(2, 0)),
                   ("int16", f"{one}(o, x)", ids.astype(np.int16)),
                   ("int16 is not written", f"p = sbuf((1, 2, 8), nl.int16)\n{one}(p, x)", ids),
                   ("two values for each", f"p = sbuf((1, 8))\n{one}(p, x)", ids)),
        *page(count, ("the example of the page", f"{nine}\n{count}(o, x, 16, -1)", counted, flags),
              ("all of what it writes into may be read", f"d = sbuf((32, 9), nl.int32)\n{count}(d, x, 16, -1)\n"
               "e = sbuf((32, 9), nl.int32)\nnisa.dma_copy(e, d)\no = sbuf((1, 9), nl.int32)\n"
               f"nisa.tensor_copy(o, e[0:1])",
               counted[:1], flags),
              ("float32", f"{nine}\n{count}(o, x, 16, -1)", counted, flags.astype(np.float32))),
        *forbidden(count, nine, ("one more element", f"{count}(o[:, 0:8], x)", flags),
                   ("whole offsets", f"{count}(o, x, 0.5)", flags), ("whole padding", f"{count}(o, x, 0, -1.5)", flags),
                   ("bfloat16", f"n = sbuf(x.shape, nl.bfloat16)\nnisa.tensor_copy(n, x)\n{count}(o, n)", flags),
                   ("as many partitions", f"{count}(o[0:16], x)", flags),
                   ("not PSUM", f"p = psum(x.shape, nl.int32)\nnisa.tensor_copy(p, x)\n{count}(o, p)", flags)),
        *forbidden(count, nine, ("needs trn2", f"{count}(o, x)", flags), core="trn1"),
    ]  # fmt: skip


def _gathers() -> list[PageRule]:
    """nki.isa.local_gather, nc_n_gather, nc_stream_shuffle."""
    one, local, shuffle = "nisa.nc_n_gather", "nisa.local_gather", "nisa.nc_stream_shuffle"
    index = RNG.integers(0, 64, (32, 4)).astype(np.uint16)
    flat = [index[p : p + 16].flatten(order="F") for p in (0, 16)]
    local_rows = np.vstack([X[p : p + 16][:, f] for p, f in zip((0, 16), flat, strict=True)])
    first = np.vstack([X[p : p + 16][:, f[:50]] for p, f in zip((0, 16), flat, strict=True)])
    fours = (index // 4 * 4).astype(np.uint16)
    runs = np.vstack(
        [X[p : p + 16].reshape(16, 16, 4)[:, fours[p : p + 16].flatten(order="F") // 4] for p in (0, 16)]
    )
    mask = [int(p) for p in RNG.permutation(32)]
    held = [255 if i % 2 else m for i, m in enumerate(mask)]
    quadrants = MANY.reshape(4, 32, 16)[:, mask].reshape(128, 16)
    return [
        *page(
            one,
            ("rows of their own", f"o = sbuf((32, 8))\n{one}(o, x, y)", np.take_along_axis(X, PLACES.astype(np.int64),
             1)),
            ("free dimensions are one", f"o = sbuf((32, 2, 4))\n{one}(o, x.reshape((32, 8, 8)), y.reshape((32, 2, 4)))",
             np.take_along_axis(X, PLACES.astype(np.int64), 1).reshape(32, 2, 4)),
            inputs=(X, PLACES),
        ),
        *forbidden(
            one, "o = sbuf((32, 8))",
            ("another type", f"n = sbuf((32, 8), nl.bfloat16)\n{one}(n, x, y)"),
            ("as many results as indices", f"{one}(o, x, y[:, 0:4])"),
            ("as many partitions", f"{one}(o[0:16], x, y[0:16])"),
            ("beyond the end", f"{one}(o, x[:, 0:4], y)"),
            ("not from PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n{one}(o, p, y)"),
            ("not to PSUM", f"p = psum((32, 8))\n{one}(p, x, y)"),
            ("whole signed indices", f"i = sbuf((32, 8), nl.uint16)\nnisa.tensor_copy(i, y)\n{one}(o, x, i)"),
            inputs=(X, PLACES),
        ),
        *page(
            local,
            ("along the partitions first", f"o = sbuf((32, 64))\n{local}(o, x, y)", local_rows, X, index),
            ("the valid ones", f"o = sbuf((32, 50))\n{local}(o, x, y, 1, 50)", first, X, index),
            ("elements that follow", f"o = sbuf((32, 64, 4))\n{local}(o, x, y, 4, 64)", runs, X, fours),
        ),
        *forbidden(
            local, "o = sbuf((32, 64))",
            ("another type", f"n = sbuf((32, 64), nl.bfloat16)\n{local}(n, x, y)"),
            ("uint16 indices", f"{local}(o, x, y)", X, index.astype(np.int32)),
            ("runs of 1 to 32", f"q = sbuf((32, 64, 3))\n{local}(q, x, y, 3, 64)"),
            ("runs of 64", f"q = sbuf((32, 64, 64))\n{local}(q, x, y, 64, 64)"),
            ("groups of 16 partitions", f"{local}(o[0:24], x[0:24], y[0:24])"),
            ("as many partitions", f"{local}(o, x, y[0:16])"),
            ("no more than there are", f"q = sbuf((32, 65))\n{local}(q, x, y, 1, 65)"),
            ("4,096 indices", f"i = sbuf((16, 257), nl.uint16)\nnisa.memset(i, 0)\nq = sbuf((16, 4112))\n"
             f"{local}(q, x[0:16], i)"),
            ("beyond the end", f"{local}(o, x[:, 0:4], y)"),
            ("not PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n{local}(o, p, y)"),
            inputs=(X, index),
        ),
        *page(
            shuffle,
            ("a quadrant", f"{OUT}\n{shuffle}(o, x, {mask})", X[mask], X),
            ("255 keeps", f"{OUT}\nnisa.memset(o, 5.0)\n{shuffle}(o, x, {held})",
             np.where(np.arange(32)[:, None] % 2, 5, X[mask]).astype(np.float32), X),
            ("in place", f"{shuffle}(x, x, {mask})\no = x", X[mask], X),
            ("each quadrant", f"{OUT}\n{shuffle}(o, x, {mask})", quadrants, MANY),
            ("another quadrant", f"w = sbuf((128, 16))\n{shuffle}(w[64:96], x[32:64], {mask})\no = sbuf((32, 16))\n"
             "nisa.tensor_copy(o, w[64:96])", MANY[32:64][mask], MANY),
            ("two from 64 on", f"w = sbuf((128, 16))\n{shuffle}(w[64:128], x[0:64], {mask})\no = sbuf((64, 16))\n"
             "nisa.tensor_copy(o, w[64:128])", quadrants[:64], MANY),
        ),
        *forbidden(
            shuffle, OUT,
            ("32 elements", f"{shuffle}(o, x, {mask[:31]})"),
            ("within the quadrant", f"{shuffle}(o, x, {[32, *mask[1:]]})"),
            ("another type", f"n = sbuf(x.shape, nl.bfloat16)\n{shuffle}(n, x, {mask})"),
            ("as many elements", f"{shuffle}(o[:, 0:32], x, {mask})"),
            ("two quadrants start at 0 or 64", f"{shuffle}(o[32:96], x[0:64], {mask})", MANY),
            ("three quadrants start at 0", f"{shuffle}(o[0:96], x[32:128], {mask})", MANY),
            ("a quadrant starts at its edge", f"{shuffle}(o[16:48], x[0:32], {mask})", MANY),
        ),
    ]  # fmt: skip


RULES = (*_patterns(), *_searches(), *_topk(), *_selections(), *_segments(), *_gathers())
