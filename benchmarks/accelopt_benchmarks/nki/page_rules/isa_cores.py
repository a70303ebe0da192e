"""nki.isa: what two cores do together, and columns by index on NeuronCore-v4."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import COLUMN, RNG, Array, PageRule, X, Y, forbidden, page

HEAD = "o = sbuf(x.shape)\nh = hbm(x.shape)\nnisa.dma_copy(h, x)"


def _together(function: str, text: str, statements: str, expected: Array | None) -> PageRule:
    return PageRule(function, text, f"me = nl.program_id(0)\n{statements}", expected, (X,), cores=2)


def _cores() -> list[PageRule]:
    """nki.isa.core_barrier, sendrecv."""
    barrier, one = "nisa.core_barrier", "nisa.sendrecv"
    swap = (
        "s = sbuf(x.shape)\nnisa.tensor_scalar(s, x, nl.multiply, float(me + 1))\nd = sbuf(x.shape)\n"
        "nisa.sendrecv({}, {}, 1 - me, 1 - me, 0{})\no = sbuf(x.shape)\n"
        "nisa.tensor_scalar(o, d, nl.multiply, float(me + 1))"
    )
    return [
        _together(barrier, "each writes a half", "h = hbm(x.shape)\n"
        f"nisa.dma_copy(h[16 * me : 16 * me + 16], x[16 * me : "
                  f"16 * me + 16])\n{barrier}(h, (0, 1))\no = sbuf(x.shape)\nnisa.dma_copy(o, h)", X),
        _together(barrier, "of an argument", f"{barrier}(a, (0, 1))\no = x", X),
        *forbidden(
            barrier, HEAD,
            ("two cores", f"{barrier}(h, (0,))"),
            ("cores 0 and 1", f"{barrier}(h, (0, 2))"),
            ("shared HBM", f"{barrier}(x, (0, 1))"),
            ("not private HBM", "g = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)\nnisa.dma_copy(g, x)\n"
             f"{barrier}(g, (0, 1))"),
            ("names its cores", f"{barrier}(h)"),
        ),
        *forbidden(barrier, HEAD, ("needs trn2", f"{barrier}(h, (0, 1))"), core="trn1"),
        _together(one, "each gets the other's", swap.format("s", "d", ""), 2 * X),
        _together(one, "by GpSimdE", swap.format("s", "d", ", nisa.dma_engine.gpsimd_dma"), 2 * X),
        _together(one, "one shape", swap.format("s", "d[:, 0:32]", ""), None),
        _together(one, "one layout", swap.format("s", "d.reshape((32, 8, 8))", ""), None),
        *forbidden(
            one, HEAD,
            ("to cores 0 and 1", f"{one}(x, o, 2, 1, 0)"),
            ("from cores 0 and 1", f"{one}(x, o, 1, 2, 0)"),
            ("from SBUF", f"{one}(h, o, 1, 1, 0)"),
            ("to SBUF", f"p = psum(x.shape)\n{one}(x, p, 1, 1, 0)"),
            ("one type", f"n = sbuf(x.shape, nl.bfloat16)\n{one}(x, n, 1, 1, 0)"),
            *((f"{most} bytes of {kind} by GpSimdE", f"w = sbuf((32, 257), nl.{kind})\nv = sbuf((32, 257), nl.{kind})\n"
               f"nisa.memset(w, 0)\n{one}(w, v, 1, 1, 0, nisa.dma_engine.gpsimd_dma)")
              for most, kind in ((1024, "float32"), (512, "bfloat16"), (256, "uint8"))),
            ("names its pipe", f"{one}(x, o, 1, 1)"),
        ),
        *forbidden(one, HEAD, ("needs trn2", f"{one}(x, o, 1, 1, 0)"), core="trn1"),
    ]  # fmt: skip


_INDEX = np.tile(RNG.permutation(64).astype(np.uint32).reshape(4, 16).T, (2, 1))[:, :2].copy()
_VIEW = "x.indirect(y, 32)"


def _columns() -> list[PageRule]:
    """nki.language.NkiTensor.indirect: offset i is ``index[i % G, i // G]``, 16 partitions a group, TensorE's 32."""
    offsets, wide = _INDEX[:16].T.flatten().astype(np.int64), _INDEX.T.flatten().astype(np.int64)
    picked = X[:, offsets]
    spread = np.zeros_like(X)
    spread[:, offsets] = Y[:, :32]
    rows, column = "o = sbuf((32, 32))", "o = sbuf((32, 1))"
    matrix = (
        "s = sbuf(x.shape, nl.bfloat16)\nnisa.tensor_copy(s, x)\nv = s.indirect(y, 32)\n"
        "p = psum((32, 32))\no = sbuf((32, 32))\n"
    )
    small = np.round(X * 2).clip(-4, 4)
    reads = {
        "tensor_copy": (f"{rows}\nnisa.tensor_copy(o, {_VIEW})", picked),
        "tensor_scalar": (f"{rows}\nnisa.tensor_scalar(o, {_VIEW}, nl.add, 1.0)", picked + 1),
        "tensor_tensor": (f"{rows}\nnisa.tensor_tensor(o, {_VIEW}, z[:, 0:32], nl.add)", picked + Y[:, :32]),
        "activation": (f"{rows}\nnisa.activation(o, nl.exp, {_VIEW})", np.exp(picked)),
        "activation_reduce": (f"{column}\nd = sbuf((32, 32))\nnisa.activation_reduce(d, nl.exp, {_VIEW}, nl.add, o)",
                              np.exp(picked).sum(1, keepdims=True)),
        "activate2": (f"{rows}\nnisa.activate2(o, nl.exp, {_VIEW}, 2.0, 1.0, nl.multiply, nl.add)",
                      np.exp(picked * 2 + 1)),
        "exponential": (f"{rows}\nnisa.exponential(o, {_VIEW})", np.exp(picked)),
        "tensor_reduce": (f"{column}\nnisa.tensor_reduce(o, nl.add, {_VIEW}, axis=1)", picked.sum(1, keepdims=True)),
        "tensor_scalar_reduce": (f"{column}\nd = sbuf((32, 32))\n"
                                 f"nisa.tensor_scalar_reduce(d, {_VIEW}, nl.add, 1.0, nl.add, o)",
                                 (picked + 1).sum(1, keepdims=True)),
        "tensor_scalar_cumulative": (f"{rows}\nnisa.tensor_scalar_cumulative(o, {_VIEW}, nl.multiply, nl.add, 1.0)",
                                     np.cumsum(picked, 1)),
    }  # fmt: skip
    refused = {
        "tensor_tensor": f"nisa.tensor_tensor(o, z[:, 0:32], {_VIEW}, nl.add)",
        "tensor_copy_predicated": "w = sbuf((32, 32), nl.uint8)\nnisa.memset(w, 1)\nnisa.memset(o, 0.0)\n"
                                  f"nisa.tensor_copy_predicated(o, {_VIEW}, w)",
        "reciprocal": f"nisa.reciprocal(o, {_VIEW})",
        "tensor_tensor_scan": f"nisa.tensor_tensor_scan(o, {_VIEW}, z[:, 0:32], 0.0, nl.multiply, nl.add)",
        "scalar_tensor_tensor": f"nisa.scalar_tensor_tensor(o, {_VIEW}, nl.add, 1.0, nl.add, z[:, 0:32])",
    }  # fmt: skip
    return [
        *(rule for name, (statements, value) in reads.items() for rule in page(
            f"nisa.{name}", ("gathers columns", statements, value), core="trn3", inputs=(X, _INDEX, Y))),
        *page("nisa.tensor_copy",
              ("all offsets of 16 partitions", "o = sbuf((16, 32))\nnisa.tensor_copy(o, x[0:16].indirect(y[0:16]))",
               picked[:16], X, _INDEX),
              ("scatters columns", "o = sbuf(x.shape)\nnisa.memset(o, 0.0)\n"
               "nisa.tensor_copy(o.indirect(y, 32), z[:, 0:32])", spread, X, _INDEX, Y), core="trn3"),
        *page("nisa.nc_matmul",
              ("TensorE's groups have 32 partitions", f"{matrix}nisa.nc_matmul(p, s[:, 0:32], v)\n"
               f"nisa.tensor_copy(o, p)",
               small[:, :32].T @ small[:, wide[:32]], small, _INDEX), core="trn3"),
        *(rule for name, call in refused.items() for rule in forbidden(
            f"nisa.{name}", rows, ("no columns by index here", call), core="trn3", inputs=(X, _INDEX, Y))),
        *forbidden("nisa.tensor_copy", rows, ("GpSimdE has no columns by index",
                   f"nisa.tensor_copy(o, {_VIEW}, engine=nisa.engine.gpsimd)"), core="trn3", inputs=(X, _INDEX)),
        *forbidden("nisa.tensor_copy", "p = psum(x.shape)\nnisa.tensor_copy(p, x)\no = x", *(
                   ("ScalarE does not scatter into PSUM", call) for call in (
                       "nisa.tensor_copy(p.indirect(y, 32), x[:, 0:32], engine=nisa.engine.scalar)",
                       "nisa.activation(p.indirect(y, 32), nl.exp, x[:, 0:32])")), core="trn3", inputs=(X, _INDEX)),
        *page("nisa.tensor_copy", ("VectorE scatters into PSUM", "p = psum(x.shape)\nnisa.memset(p, 0.0)\n"
              "nisa.tensor_copy(p.indirect(y, 32), z[:, 0:32], engine=nisa.engine.vector)\no = sbuf(x.shape)\n"
              "nisa.tensor_copy(o, p)", spread, X, _INDEX, Y), core="trn3"),
        *forbidden("nisa.tensor_copy", rows, ("columns by index need trn3", f"nisa.tensor_copy(o, {_VIEW})"),
                   inputs=(X, _INDEX)),
        *forbidden("nisa.tensor_copy", "o = sbuf((16, 32))",
                   ("an index starts at a quadrant", "nisa.tensor_copy(o, x[16:32].indirect(y[16:32]))"), core="trn3",
                   inputs=(X, _INDEX)),
        *forbidden("nisa.nc_matmul", matrix,
                   ("columns by index and parts of the array",
                    "nisa.nc_matmul(p, s[:, 0:32], v, tile_position=(32, 0), tile_size=(32, 128))"),
                   ("a transpose's moving operand has none", "nisa.nc_matmul(p, s[:, 0:32], v, is_transpose=True)"),
                   ("types of 16 and 8 bits", "nisa.nc_matmul(p, x[:, 0:32], x.indirect(y, 32))"), core="trn3",
                   inputs=(small, _INDEX)),
        *forbidden("nisa.tensor_scalar", "o = sbuf((32, 32))",
                   ("an operand has no columns by index",
                    "nisa.tensor_scalar(o, x[:, 0:32], nl.add, z.indirect(y, 1))"),
                   core="trn3", inputs=(X, _INDEX, COLUMN)),
    ]  # fmt: skip


RULES = (*_cores(), *_columns())
