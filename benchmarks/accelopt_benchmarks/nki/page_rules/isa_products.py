"""nki.isa: products, transposes, fills and DMA."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import (
    BITS,
    OUT,
    RNG,
    WHOLE,
    Array,
    PageRule,
    X,
    Y,
    new,
)


def _products() -> list[PageRule]:
    """nki.isa.nc_matmul, nc_transpose, dma_transpose."""
    one, out = "nisa.nc_matmul", "nisa.tensor_copy(o, p)"
    overlap = np.zeros((64, 96), np.float32)
    overlap[:, :64] += X.T @ Y
    overlap[:, 32:] += X.T @ Y
    wide = RNG.standard_normal((32, 4096), dtype=np.float32)
    psum = new("p", like="(64, 64)", buffer="psum")
    square = new("o", like="(64, 64)")
    product = f"{psum}\n{square}\n{one}(p, x, y)"
    long = (
        f"{new('p', like='(64, 4096)', buffer='psum')}\n{new('o', like='(64, 4096)')}\n{one}(p, x, y)\n{out}"
    )
    return [
        PageRule(one, "the first overwrites", f"{product}\n{out}", X.T @ Y, (X, Y)),
        PageRule(one, "later ones add", f"{product}\n{one}(p, x, y)\n{out}", 2 * X.T @ Y, (X, Y)),
        PageRule(one, "accumulate=False overwrites", f"{product}\n{one}(p, x, y, accumulate=False)\n{out}", X.T @ Y, (X,
             Y)),
        PageRule(one, "overlapping places add",
             f"{new('p', like='(64, 96)', buffer='psum')}\n{new('o', like='(64, 96)')}\n"
             f"{one}(p[:, 0:64], x, y)\n{one}(p[:, 32:96], x, y)\n{out}", overlap, (X, Y)),
        PageRule(one, "4,096 columns on trn3", long, X.T @ wide, (X, wide), "trn3"),
        PageRule(one, "512 columns on trn2", long, None, (X, wide)),
        PageRule(one, "no integers", f"{psum}\n{square}\n{one}(p, x, x)\n{out}", None, (WHOLE.repeat(4, 1),)),
        PageRule(one, "writes float32 on trn2",
             f"{new('p', 'bfloat16', '(64, 64)', 'psum')}\n{square}\n{one}(p, x, y)\n{out}", None, (X, Y)),
        PageRule(one, "writes to PSUM", f"{square}\n{one}(o, x, y)", None, (X, Y)),
        PageRule(one, "float32 goes with float32",
             f"{psum}\n{square}\n{new('n', 'bfloat16')}\nnisa.tensor_copy(n, y)\n"
             f"{one}(p, x, n)\n{out}", None, (X, Y)),
        PageRule(one, "reads SBUF",
             f"{psum}\n{square}\n{new('q', buffer='psum')}\nnisa.tensor_copy(q, x)\n{one}(p, q, y)",
             None, (X, Y)),
        PageRule(one, "a part of the array",
             f"{product.replace('y)', 'y, tile_position=(32, 0), tile_size=(32, 64))')}\n{out}", X.T @ Y, (X, Y)),
        PageRule(one, "parts start at multiples of their size",
             f"{product.replace('y)', 'y, tile_position=(16, 0), tile_size=(32, 64))')}\n{out}", None, (X, Y)),
        PageRule(one, "the stationary operand fits its part",
             f"{product.replace('y)', 'y, tile_position=(0, 0), tile_size=(32, 32))')}\n{out}", None, (X, Y)),
        PageRule(one, "quarters need trn2",
             f"{product.replace('y)', 'y, tile_position=(32, 0), tile_size=(32, 64))')}\n{out}", None, (X, Y), "trn1"),
        PageRule("nisa.nc_transpose", "VectorE takes 32 x 32", f"{new('o', like='(64, 32)')}\n"
             "nisa.nc_transpose(o, x, engine=nisa.engine.vector)", None, (X,)),
        PageRule("nisa.dma_transpose", "swaps", f"{new('o', like='(64, 32)')}\nnisa.dma_transpose(o, x)", X.T, (X,)),
        PageRule("nisa.dma_transpose", "one type", f"{new('o', 'bfloat16', '(64, 32)')}\nnisa.dma_transpose(o, x)",
             None,
             (X,)),
        PageRule("nisa.dma_transpose", "indices column by column", _GATHERED, _gathered(), (_ROWS, _PLACES)),
    ]  # fmt: skip


def _moves() -> list[PageRule]:
    """nki.isa.memset, iota, dma_copy, dma_compute; what nki.isa gives back."""
    return [
        PageRule("nisa.NkiInstruction", "depends_on",
             f"{OUT}\nfirst = nisa.memset(o, 0.0)\nnisa.tensor_copy(o, x).depends_on(first)", X, (X,)),
        PageRule("nisa.NkiValidationError", "is an exception",
             f"{OUT}\ntry:\n    nisa.tensor_copy(o, x)\nexcept nisa.NkiValidationError:\n    pass", X, (X,)),
        PageRule("nisa.memset", "whole numbers into integers", f"{BITS}\nnisa.memset(o, 2.5)", None, (WHOLE,)),
        PageRule("nisa.iota", "four dimensions at most",
             f"{new('o', 'int32', '(32, 32)')}\nnisa.iota(o, [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2]])", None, (X,)),
        PageRule("nisa.iota", "written to SBUF", f"{new('o', 'int32', buffer='psum')}\nnisa.iota(o, [[1, 64]])", None,
             (X,)),
        PageRule("nisa.dma_copy", "does not reach PSUM", f"{new('o', buffer='psum')}\nnisa.dma_copy(o, x)", None,
             (X,)),
        PageRule("nisa.dma_copy", "hardware descriptors need trn2",
             f"{OUT}\nnisa.dma_copy(o, x, dge_mode=nisa.dge_mode.hwdge)", None, (X,), "trn1"),
        PageRule("nisa.dma_compute", "adds in float32", f"{OUT}\nnisa.dma_compute(o, [x, y], reduce_op=nl.add)", X + Y,
             (X, Y)),
        PageRule("nisa.dma_compute", "adds only", f"{OUT}\nnisa.dma_compute(o, [x, y], reduce_op=nl.multiply)", None,
             (X,
             Y)),
    ]  # fmt: skip


_ROWS = RNG.standard_normal((512, 128)).astype(np.float16)
_PLACES = RNG.integers(0, 512, (128, 2)).astype(np.uint32)
_GATHERED = """\
o = nl.ndarray((128, 256), dtype=nl.float16, buffer=nl.sbuf)
nisa.dma_transpose(o, a.ap(pattern=[[128, 256], [1, 128]], vector_offset=y, indirect_dim=0), axes=(1, 0))"""


def _gathered() -> Array:
    """The page's words: ``flat_indices = indices.T.flatten()``, 256 rows, transposed."""
    rows: Array = _ROWS[_PLACES.T.flatten()].T
    return rows


RULES = (
    *_products(),
    *_moves(),
)
