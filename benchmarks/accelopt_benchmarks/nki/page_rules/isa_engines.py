"""The architecture guides and nki.api.shared: what engines reach, and how they convert."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import RNG, WHOLE, PageRule, X, Y, forbidden, page, rounded

OUT = "o = sbuf(x.shape)"
MANY = RNG.standard_normal((128, 16), dtype=np.float32)
BIG = RNG.integers(-(2**31), 2**31, (32, 32)).astype(np.int32)
#: Instructions on the whole of a tile, from one view to another.
ON_VIEWS = {
    "tensor_copy": "nisa.tensor_copy({o}, {x})", "activation": "nisa.activation({o}, nl.copy, {x})",
    "tensor_scalar": "nisa.tensor_scalar({o}, {x}, nl.add, 0.0)", "reciprocal": "nisa.reciprocal({o}, {x})",
    "tensor_tensor": "nisa.tensor_tensor({o}, {x}, {x}, nl.add)", "memset": "nisa.memset({o}, 1.0)",
}  # fmt: skip


def _partitions() -> list[PageRule]:
    """trainium_inferentia2_arch, Tensor access: no stride over partitions; where tensors may start."""
    wide = "o = sbuf(x.shape)\nnisa.memset(o, 0.0)"
    shown = np.zeros_like(MANY)
    return [
        *(rule for name, call in ON_VIEWS.items() for rule in forbidden(
            f"nisa.{name}", f"{OUT}\nnisa.memset(o, 0.0)", ("no stride over partitions", call.format(o="o[0:32:2]",
            x="x[0:32:2]")))),
        *(PageRule("nisa.tensor_copy", f"starts at {start} with {size}",
                   f"{wide}\nnisa.tensor_copy(o[{start}:{start + size}], x[{start}:{start + size}])",
                   np.where(((np.arange(128) >= start) & (np.arange(128) < start + size))[:, None], MANY, shown),
                   (MANY,),
                   told=told)
          for start, size, told in ((96, 32, False), (64, 64, False), (0, 128, False), (32, 32, False), (16, 16, True),
                                    (32, 64, True), (1, 1, True))),
        *page("nisa.tensor_copy", ("from one quadrant to another",
              f"{wide}\nnisa.tensor_copy(o[32:64], x[96:128])",
              np.vstack([shown[:32], MANY[96:], shown[:64]]), MANY)),
        *page("nisa.dma_copy", ("strides over partitions", "o = sbuf((16, 64))\nnisa.dma_copy(o, x[0:32:2])", X[::2],
         X)),
    ]  # fmt: skip


def _conversions() -> list[PageRule]:
    """nki.api.shared: arithmetic is in float32; nki.isa.dma_copy: two steps through float32."""
    real = WHOLE.astype(np.float32)
    bits = "o = sbuf(x.shape, nl.int32)"
    return [
        *page(
            "nisa.tensor_scalar",
            ("int32 goes through float32", f"{bits}\nnisa.tensor_scalar(o, x, nl.add, 1.0)",
             rounded(real + np.float32(1), np.int32), WHOLE),
        ),
        *page(
            "nisa.tensor_reduce",
            ("int32 goes through float32", "o = sbuf((32, 1), nl.int32)\nnisa.tensor_reduce(o, nl.maximum, x, axis=1)",
             rounded(real.max(1, keepdims=True), np.int32), WHOLE),
        ),
        *page("nisa.activation", ("int32 goes through float32", f"{bits}\nnisa.activation(o, nl.copy, x)",
                                  rounded(real, np.int32), WHOLE)),
        *page("nisa.reciprocal", ("into whole numbers", f"{bits}\nnisa.reciprocal(o, x)", rounded(1 / X, np.int32), X)),
        *page("nisa.scalar_tensor_tensor", ("into whole numbers",
              f"{bits}\nnisa.scalar_tensor_tensor(o, x, nl.multiply, 2.5, nl.add, y)",
              rounded(X * np.float32(2.5) + Y, np.int32), X, Y)),
        *page("nisa.dma_copy",
              ("int32 to int16", "o = sbuf(x.shape, nl.int16)\nnisa.dma_copy(o, a)", rounded(real, np.int16), WHOLE),
              ("int32 to uint8", "o = sbuf(x.shape, nl.uint8)\nnisa.dma_copy(o, a)", rounded(real, np.uint8), WHOLE),
              ("int32 to float32", f"{OUT}\nnisa.dma_copy(o, a)", real, WHOLE),
              ("int32 stays as it is", f"{bits}\nnisa.dma_copy(o, a)", WHOLE, WHOLE)),
        *page("nisa.affine_select", ("into whole numbers", f"{bits}\n"
         f"nisa.affine_select(o, [[1, 64]], 0, x, 2.5, nl.greater)",
                                     np.where(np.arange(64) > 0, rounded(X, np.int32), 2).astype(np.int32), X)),
        *page("nisa.nc_transpose",
              ("int32 by VectorE", "o = sbuf((32, 32), nl.int32)\nnisa.nc_transpose(o, x, engine=nisa.engine.vector)",
               BIG.T,
               BIG),
              ("int32 by TensorE", "p = psum((32, 32), nl.int32)\nnisa.nc_transpose(p, x, engine=nisa.engine.tensor)\n"
               "o = sbuf((32, 32), nl.int32)\nnisa.tensor_copy(o, p)", BIG.T, BIG)),
    ]  # fmt: skip


def _generations() -> list[PageRule]:
    """trainium3_arch: ScalarE has tensor_scalar as VectorE has it."""
    one, scalar = "nisa.tensor_scalar", "engine=nisa.engine.scalar"
    return [
        *page(
            one,
            ("ScalarE of trn3: subtract", f"{OUT}\n{one}(o, x, nl.subtract, 1.0, {scalar})", X - 1),
            ("ScalarE of trn3: two operations", f"{OUT}\n"
             f"{one}(o, x, nl.maximum, 0.0, op1=nl.multiply, operand1=2.0, {scalar})",
             np.maximum(X, 0) * 2),
            core="trn3", inputs=(X,),
        ),
        *forbidden(one, OUT, ("bits on ScalarE of trn3", "w = sbuf(x.shape, nl.int32)\nnisa.tensor_copy(w, x)\n"
                   f"{one}(w, w, nl.bitwise_and, 1, {scalar})"), core="trn3"),
    ]  # fmt: skip


def _numbers() -> list[PageRule]:
    """Release notes of NKI 0.4: patterns with offsets in registers."""
    bits, at = "o = sbuf((32, 16), nl.int32)", np.arange(16)[None].repeat(32, 0)
    return [
        *page("nisa.iota", ("an offset in a register", f"{bits}\nr = nisa.register_alloc(7)\n"
         f"nisa.iota(o, [[1, 16]], r)",
                            (at + 7).astype(np.int32), X)),
        *page("nisa.affine_select", ("an offset in a register", "o = sbuf((32, 16))\nr = nisa.register_alloc(-5)\n"
              "nisa.affine_select(o, [[1, 16]], 0, x[:, 0:16], 0.0, nl.greater, offset=r)",
              np.where(at - 5 > 0, X[:, :16], 0).astype(np.float32), X)),
        *page("nisa.tensor_copy", ("from where a register says", "o = sbuf((32, 16))\nr = nisa.register_alloc(2)\n"
              "nisa.tensor_copy(o, x.ap(pattern=[[64, 32], [1, 16]], scalar_offset=r, indirect_dim=1))", X[:, 2:18],
              X)),
    ]  # fmt: skip


RULES = (*_partitions(), *_conversions(), *_generations(), *_numbers())
