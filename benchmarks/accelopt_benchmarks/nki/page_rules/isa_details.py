"""nki.isa: what single sentences of the pages state."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import (
    COLUMN,
    EIGHTS,
    LEAST,
    RNG,
    TIES,
    WHOLE,
    PageRule,
    X,
    Y,
    forbidden,
    page,
    rounded,
)  # fmt: skip

OUT, BITS = "o = sbuf(x.shape)", "o = sbuf(x.shape, nl.int32)"
NEAR = np.array([[2**24, 2**24 + 1, -(2**24) - 1, 7]], np.int32).repeat(32, 0)
NEXT = np.array([[2**24 + 1, 2**24, -(2**24), 7]], np.int32).repeat(32, 0)
ROWS = RNG.standard_normal((256, 64), dtype=np.float32)
INDEX = RNG.permutation(256)[:32].astype(np.uint32)[:, None]
TRUTH = (X > 0).astype(np.uint8)
CUBE = "x.reshape((32, 8, 8))"


def _exact() -> list[PageRule]:
    """nki.isa.tensor_tensor: "exact results for all 32-bit integer values" on GpSimdE; iota: 32-bit arithmetic."""
    one = "nisa.tensor_tensor"
    values = {
        "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal,
        "greater": np.greater, "less_equal": np.less_equal,
    }  # fmt: skip
    return [
        *page(one, *((f"{name} of int32 is exact", f"{BITS}\n{one}(o, x, y, nl.{name})", f(NEAR, NEXT).astype(np.int32))
                     for name, f in values.items()), inputs=(NEAR, NEXT)),
        *page(one, ("GpSimdE by name", f"{BITS}\n{one}(o, x, y, nl.maximum, engine=nisa.engine.gpsimd)",
                    np.maximum(NEAR, NEXT), NEAR, NEXT),
              ("int32 into float32 goes through float32", f"{OUT}\n{one}(o, x, y, nl.subtract)",
               NEAR.astype(np.float32) - NEXT.astype(np.float32), NEAR, NEXT)),
        *page("nisa.iota", ("32 bits wrap", "o = sbuf((32, 8), nl.int32)\nnisa.iota(o, [[1, 8]], 2**31 - 4)",
                            (np.arange(8) + 2**31 - 4).astype(np.uint32).view(np.int32)[None].repeat(32, 0), X)),
        *forbidden("nisa.iota", "o = sbuf((32, 8), nl.int32)", ("an int32 offset", "nisa.iota(o, [[1, 8]], 2**31)"),
                   ("an int32 multiplier", "nisa.iota(o, [[1, 8]], 0, 2**31)")),
    ]  # fmt: skip


def _registers() -> list[PageRule]:
    """Registers that instructions of an engine share."""
    head = "d = sbuf(x.shape)\no = sbuf((32, 1))\n"
    total = np.exp(X.astype(np.float64)).sum(1, keepdims=True)
    select = "nisa.select_reduce(d, y, x, -2.0, {}reduce_cmd=nisa.reduce_cmd.{})"
    bounds = "lo = sbuf((32, 1))\nhi = sbuf((32, 1))\nnisa.memset(lo, 3.0)\nnisa.memset(hi, 9.0)\n"
    chosen = np.where(TRUTH, X, -2).max(1, keepdims=True)
    inside = np.where((np.arange(64) >= 3) & (np.arange(64) < 9), X, LEAST).max(1, keepdims=True)
    return [
        *page("nisa.activate2", ("shares registers with activation",
         f"{head}nisa.activation(d, nl.exp, x, reduce_op=nl.add, "
              "reduce_cmd=nisa.reduce_cmd.reset_reduce)\nnisa.activate2(d, nl.exp, x, 0.0, 0.0, nl.bypass, nl.bypass, "
              "reduce_op=nl.add, reduce_res=o, reduce_cmd=nisa.reduce_cmd.reduce)", 2 * total, X), core="trn3"),
        *page("nisa.activation_reduce", ("keeps its result in the registers",
         f"{head}nisa.activation_reduce(d, nl.exp, x, "
              "nl.add, None)\nnisa.activation(d, nl.exp, x, reduce_op=nl.add, reduce_res=o, "
              "reduce_cmd=nisa.reduce_cmd.idle)", total, X)),
        *page("nisa.range_select", ("shares registers with select_reduce",
              f"{head}{bounds}{select.format('', 'reset_reduce')}\n"
              "nisa.range_select(d, x, nl.greater_equal, nl.less, lo, hi, nisa.reduce_cmd.reduce, o)",
              np.maximum(chosen, inside), X, TRUTH)),
        *page("nisa.select_reduce", ("shares registers with tensor_scalar_reduce",
              f"{head}nisa.tensor_scalar_reduce(d, x, nl.multiply, 3.0, nl.maximum)\n"
              f"{select.format('reduce_res=o, ', 'reduce')}", np.maximum((3 * X).max(1, keepdims=True), chosen), X,
              TRUTH)),
        *page("nisa.tensor_scalar_reduce", ("the identity of a maximum is -inf", f"{head}"
              "nisa.tensor_scalar_reduce(d, x, nl.add, -1e30, nl.maximum, o)",
              (X + np.float32(-1e30)).max(1, keepdims=True), X)),
    ]  # fmt: skip


def _by_magnitude() -> list[PageRule]:
    """Release notes of NKI 0.4 and nki.language.abs_max: compared by magnitude, with the sign; square and relu."""
    rows, one = (
        "d = sbuf(x.shape)\no = sbuf((32, 1))\n",
        "nisa.tensor_scalar_reduce(d, x, nl.{}, {}, nl.add, o)",
    )
    larger, lines = np.where(np.abs(X) > 1, X, 1), np.arange(32)
    chain = (
        "nisa.activate2(d, nl.copy, x, 0.0, 0.0, nl.bypass, nl.bypass, reduce_op=nl.{}, reduce_res=o, "
        "reduce_cmd=nisa.reduce_cmd.reset_reduce)"
    )
    return [
        *page("nisa.tensor_scalar", ("abs_max", f"{OUT}\nnisa.tensor_scalar(o, x, nl.abs_max, 1.0)", larger, X),
         core="trn3"),
        *page("nisa.tensor_tensor", ("abs_min", f"{OUT}\nnisa.tensor_tensor(o, x, y, nl.abs_min)",
                                     np.where(np.abs(X) < np.abs(Y), X, Y), X, Y), core="trn3"),
        *page("nisa.tensor_scalar_reduce",
              ("abs_max", rows + one.format("abs_max", 1.0), larger.sum(1, keepdims=True), X),
              ("square", rows + one.format("square", None), (X * X).sum(1, keepdims=True), X),
              ("relu", rows + one.format("relu", 0), np.maximum(X, 0).sum(1, keepdims=True), X), core="trn3"),
        *page("nisa.activate2",
              ("abs_max reduces", rows + chain.format("abs_max"), X[lines, np.abs(X).argmax(1)][:, None], X),
              ("abs_min reduces", rows + chain.format("abs_min"), X[lines, np.abs(X).argmin(1)][:, None], X),
               core="trn3"),
    ]  # fmt: skip


def _shapes() -> list[PageRule]:
    """Tiles of several free dimensions, rows of a column, single elements."""
    eight = "o = sbuf((32, 8))\n"
    one = X[:, :1]
    statistics = np.hstack([np.ones((32, 1)), one, np.zeros((32, 4))])
    return [
        *page("nisa.activation", ("free dimensions in any shape", f"o = sbuf((32, 8, 8))\n"
         f"nisa.activation(o, nl.exp, {CUBE}, y)",
                                  np.exp(X + COLUMN).reshape(32, 8, 8), X, COLUMN)),
        *page("nisa.tensor_scalar", ("free dimensions in any shape",
              f"o = sbuf((32, 64))\nnisa.tensor_scalar(o, {CUBE}, nl.multiply, y)", X * COLUMN, X, COLUMN)),
        *page("nisa.range_select", ("positions over all free dimensions",
              "lo = sbuf((32, 1))\nhi = sbuf((32, 1))\nnisa.memset(lo, 3.0)\nnisa.memset(hi, 19.0)\no = sbuf(x.shape)\n"
              f"nisa.range_select(o.reshape((32, 8, 8)), {CUBE}, nl.greater_equal, nl.less, lo, hi)",
              np.where((np.arange(64) >= 3) & (np.arange(64) < 19), X, LEAST), X)),
        *page("nisa.bn_stats", ("one element", "o = sbuf((32, 6))\nnisa.bn_stats(o, x[:, 0:1])", statistics, X),
              ("free dimensions are one", f"s = sbuf((32, 6))\nnisa.bn_stats(s, {CUBE})\no = sbuf((32, 2))\n"
               "nisa.bn_aggr(o, s)", np.hstack([X.mean(1, keepdims=True), X.var(1, keepdims=True)]), X)),
        *page("nisa.max8", ("of whole numbers, in float32", f"{eight}nisa.max8(o, x)",
                            -np.sort(-WHOLE.astype(np.float32), 1)[:, :8], WHOLE),
              ("into whole numbers", "o = sbuf((32, 8), nl.int32)\nnisa.max8(o, x)",
               rounded(-np.sort(-X, 1)[:, :8], np.int32), X)),
        *page("nisa.nc_find_index8", ("free dimensions are one",
              "o = sbuf((32, 8), nl.uint32)\nnisa.nc_find_index8(o, x.reshape((32, 2, 6)), y)",
              np.array([[2, 4, 5, 6, 7, 8, 9, 10]], np.uint32).repeat(32, 0), TIES, EIGHTS)),
        *page("nisa.nc_match_replace8", ("in place", "nisa.nc_match_replace8(x, x, y, -1.0)\no = x",
                                         np.where((TIES == 3) | (TIES == 8), -1, TIES), TIES, EIGHTS)),
        *page("nisa.nc_n_gather", ("more than 512 elements", "o = sbuf((32, 600))\nnisa.nc_n_gather(o, x, y)",
              np.take_along_axis(X, np.arange(600)[None].repeat(32, 0) % 64, 1), X,
              (np.arange(600) % 64).astype(np.uint32)[None].repeat(32, 0))),
        *page("nisa.nc_stream_shuffle", ("from PSUM", "p = psum(x.shape)\nnisa.tensor_copy(p, x)\no = sbuf(x.shape)\n"
                                         "nisa.nc_stream_shuffle(o, p, [31] * 32)", X[[31] * 32], X),
              ("one partition to all", "o = sbuf((32, 64))\nnisa.nc_stream_shuffle(o, x[0:1], [0] * 32)", X[[0] * 32],
               X)),
    ]  # fmt: skip


def _indices() -> list[PageRule]:
    """nki.isa.dma_copy: offsets of shape (P, 1) in SBUF; scalar offsets of one element."""
    call = "nisa.dma_copy(o, a.ap(pattern=[[64, 32], [1, 64]], {}, indirect_dim=0))"
    single = "o = sbuf((1, 64))\nnisa.dma_copy(o, a.ap(pattern=[[64, 1], [1, 64]], scalar_offset=w, indirect_dim=0))"
    bfloat = "n = sbuf(x.shape, nl.bfloat16)\nnisa.memset(n, 1.0)\n"
    return [
        *forbidden(
            "nisa.dma_copy", "o = sbuf((32, 64))",
            ("indices lie in SBUF", call.format("vector_offset=b")),
            ("indices are a column", f"w = sbuf((32, 2), nl.uint32)\nnisa.memset(w, 0)\n"
             f"{call.format('vector_offset=w')}"),
            ("a number is one element", f"w = sbuf((1, 2), nl.uint32)\nnisa.memset(w, 0)\n{single}"),
            ("a number lies in SBUF", single.replace("=w", "=b[0:1]")),
            inputs=(ROWS, INDEX),
        ),
        *forbidden("nisa.dma_copy", OUT, ("no unique_indices any more", "nisa.dma_copy(o, x, unique_indices=True)")),
        *forbidden("nisa.dma_transpose", "o = sbuf((64, 16), nl.float16)",
                   ("names no engine", "nisa.dma_transpose(o, a, engine=nisa.engine.sync)"),
                   inputs=(RNG.standard_normal((16, 64)).astype(np.float16),)),
        *page("nisa.quantize_mx", ("of float16", "h = sbuf(x.shape, nl.float16)\nnisa.tensor_copy(h, x)\n"
              "q = sbuf((32, 16), nl.float8_e4m3fn_x4)\ns = sbuf((4, 16), nl.uint8)\nnisa.quantize_mx(q, h, s)\n"
              "o = s", np.full((4, 16), 120, np.uint8), np.ones_like(X)), core="trn3"),
        *page("nisa.select_reduce", ("what is reduced is not rounded", bfloat +
              "r = sbuf((32, 1))\nnisa.select_reduce(n, y, x, -9.0, reduce_res=r, "
              "reduce_cmd=nisa.reduce_cmd.reset_reduce)\no = r", np.where(TRUTH, X, -9).max(1, keepdims=True), X,
              TRUTH)),
    ]  # fmt: skip


RULES = (*_exact(), *_registers(), *_by_magnitude(), *_shapes(), *_indices())
