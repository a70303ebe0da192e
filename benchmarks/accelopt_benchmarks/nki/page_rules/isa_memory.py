"""nki.isa: DMA, and what two cores do together."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import RNG, Array, PageRule, X, Y, forbidden, page

OUT = "o = sbuf(x.shape)"
ROWS = RNG.standard_normal((256, 64), dtype=np.float32)
INDEX = RNG.permutation(256)[:32].astype(np.uint32)[:, None]
FAR = INDEX.copy()
FAR[3] = 256
HALVES = np.round(RNG.standard_normal((256, 64)) * 4).astype(np.float16)
SIXTEEN = HALVES[:16].copy()
AP = "{}.ap(pattern=[[64, 32], [1, 64]], vector_offset={}, indirect_dim=0{})"
GATHER, SCATTER = AP.format("a", "y", ""), AP.format("h", "y", "")


def _copies() -> list[PageRule]:
    one = "nisa.dma_copy"
    kept = ROWS[np.minimum(FAR, 255)[:, 0]]
    kept[3] = 5
    scattered = np.zeros((256, 64), np.float32)
    scattered[INDEX[:, 0]] = X
    return [
        *page(
            one,
            ("within SBUF", f"{OUT}\n{one}(o, x)", X, X),
            ("within HBM", f"h = hbm(x.shape)\n{one}(h, a)\n{OUT}\n{one}(o, h)", X, X),
            ("the number of elements counts", f"o = sbuf((32, 8, 8))\n{one}(o, x)", X.reshape(32, 8, 8), X),
            ("hardware descriptors", f"{OUT}\n{one}(o, a, dge_mode=nisa.dge_mode.hwdge)", X, X),
            *((f"hardware descriptors by {e}",
             f"{OUT}\n{one}(o, a, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.{e})",
               X, X) for e in ("sync", "scalar")),
            ("gathers", f"o = sbuf((32, 64))\n{one}(o, {GATHER})", ROWS[INDEX[:, 0]], ROWS, INDEX),
            ("gathers by software", f"o = sbuf((32, 64))\n{one}(o, {GATHER}, dge_mode=nisa.dge_mode.swdge)",
             ROWS[INDEX[:, 0]],
             ROWS, INDEX),
            ("skips what lies beyond", f"o = sbuf((32, 64))\nnisa.memset(o, 5.0)\n{one}(o, {GATHER}, "
             "oob_mode=nisa.oob_mode.skip)", kept, ROWS, FAR),
            ("scatters", "h = hbm((256, 64))\nz0 = sbuf((128, 64))\nnisa.memset(z0, 0.0)\n"
             f"{one}(h[0:128], z0)\n{one}(h[128:256], z0)\n{one}({SCATTER}, x)\no = h", scattered, X, INDEX),
            ("from where a register says", f"r = nisa.register_alloc(3)\no = sbuf((1, 64))\n"
             f"{one}(o, a.ap(pattern=[[64, 1], [1, 64]], scalar_offset=r, indirect_dim=0))", ROWS[3:4], ROWS),
            ("from where a tensor says", f"o = sbuf((1, 64))\n"
             f"{one}(o, a.ap(pattern=[[64, 1], [1, 64]], scalar_offset=y, indirect_dim=0))", ROWS[7:8], ROWS,
             np.array([[7]], np.int32)),
        ),
        *page(one, *((f"priority {n}", f"{OUT}\n{one}(o, a, priority={n})", X, X) for n in (0, 3)), core="trn3"),
        *forbidden(
            one, OUT,
            ("as many elements", f"{one}(o[:, 0:32], x)"),
            ("not from PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n{one}(o, p)"),
            ("hardware descriptors keep the type",
             f"n = sbuf(x.shape, nl.bfloat16)\n{one}(n, a, dge_mode=nisa.dge_mode.hwdge)"),
            ("an engine needs hardware descriptors", f"{one}(o, a, engine=nisa.engine.sync)"),
            ("an engine needs hardware descriptors, not software's",
             f"{one}(o, a, dge_mode=nisa.dge_mode.swdge, engine=nisa.engine.sync)"),
            *((f"descriptors by {e}", f"{one}(o, a, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.{e})")
              for e in ("vector", "gpsimd", "tensor")),
            ("a priority needs trn3", f"{one}(o, a, priority=1)"),
        ),
        *forbidden(one, OUT, ("priorities are 0 to 3", f"{one}(o, a, priority=4)"),
                   ("no negative priority", f"{one}(o, a, priority=-1)"), core="trn3"),
        *forbidden(
            one, "o = sbuf((32, 64))",
            ("beyond the end", f"{one}(o, {GATHER})", ROWS, FAR),
            ("two offsets", f"{one}(o, {AP.format('a', 'y', ', scalar_offset=y[0:1]')})"),
            ("vectors index HBM", "w = sbuf((32, 64))\nnisa.memset(w, 0.0)\ni = sbuf((32, 1), nl.uint32)\n"
             f"nisa.memset(i, 0)\n{one}(o, {AP.format('w', 'i', '')})"),
            ("gathers by software alone", f"{one}(o, {GATHER}, dge_mode=nisa.dge_mode.hwdge)"),
            ("gathers by descriptors", f"{one}(o, {GATHER}, dge_mode=nisa.dge_mode.none)"),
            ("vectors index the first dimension", f"{one}(o, {GATHER.replace('dim=0', 'dim=1')})"),
            ("one index for a partition", f"{one}(o, {AP.format('a', 'y[0:16]', '')})"),
            inputs=(ROWS, INDEX),
        ),
    ]  # fmt: skip


def _modes() -> list[PageRule]:
    """AWS's DGE reference: indirect from NeuronCore-v3 on."""
    return [
        *forbidden("nisa.dma_copy", "o = sbuf((32, 64))", ("gathering needs trn2", f"nisa.dma_copy(o, {GATHER})"),
                   core="trn1", inputs=(ROWS, INDEX)),
        *page("nisa.dma_copy", *((f"{mode}, static", f"{OUT}\nnisa.dma_copy(o, a, dge_mode=nisa.dge_mode.{mode})", X, X)
                                 for mode in ("none", "swdge", "unknown"))),
    ]  # fmt: skip


def _transposes() -> list[PageRule]:
    one = "nisa.dma_transpose"
    cube, four = HALVES[:16].reshape(16, 4, 16), HALVES[:16].reshape(16, 2, 2, 16)
    rows = RNG.standard_normal((256, 128)).astype(np.float16)
    indices = RNG.integers(0, 256, (128, 1)).astype(np.uint32)
    many = RNG.integers(0, 256, (128, 2)).astype(np.uint32)
    indirect = (
        "o = sbuf((128, {n}), nl.float16)\n"
        + one
        + "(o, a.ap(pattern=[[128, {n}], [1, 128]], vector_offset=y{s}, indirect_dim=0), axes=(1, 0){more})"
    )
    two, hw = "o = sbuf((64, 16), nl.float16)", "dge_mode=nisa.dge_mode.hwdge"
    deep = RNG.standard_normal((64, 1, 2, 128)).astype(np.float16)
    pick = RNG.integers(0, 64, (128, 1)).astype(np.uint32)
    return [
        *page(
            one,
            ("two dimensions", f"{two}\n{one}(o, a)", SIXTEEN.T, SIXTEEN),
            ("from SBUF", f"{two}\n{one}(o, x, axes=(1, 0))", SIXTEEN.T, SIXTEEN),
            ("three dimensions", f"o = sbuf((16, 4, 16), nl.float16)\n{one}(o, a)", cube.transpose(2, 1, 0), cube),
            ("four dimensions", f"o = sbuf((16, 2, 2, 16), nl.float16)\n{one}(o, a, axes=(3, 1, 2, 0))",
             four.transpose(3, 1, 2, 0), four),
            ("hardware descriptors", f"{two}\n{one}(o, a, {hw})", SIXTEEN.T, SIXTEEN),
            ("hardware descriptors, three dimensions", f"o = sbuf((16, 4, 4), nl.float16)\n{one}(o, a, {hw})",
             cube[:4].transpose(2, 1, 0), cube[:4].copy()),
            ("gathers 128 rows", indirect.format(n=128, s="", more=""), rows[indices[:, 0]].T, rows, indices),
            ("gathers by columns of indices", indirect.format(n=256, s="", more=""), rows[many.T.flatten()].T, rows,
             many),
            ("gathers 16 rows", indirect.format(n=16, s="[0:16]", more=""), rows[indices[:16, 0]].T, rows, indices),
            ("gathers in four dimensions", "o = sbuf((128, 1, 2, 128), nl.float16)\n" + one +
             "(o, a.ap(pattern=[[256, 128], [256, 1], [128, 2], [1, 128]], vector_offset=y, indirect_dim=0), "
             "axes=(3, 1, 2, 0))",
             deep[pick[:, 0]].transpose(3, 1, 2, 0), deep, pick),
        ),
        PageRule(one, "no descriptors, as the DGE reference says", f"{two}\n{one}(o, a, dge_mode=nisa.dge_mode.none)",
                 SIXTEEN.T, (SIXTEEN,), told=True),
        PageRule(one, "from where a register says, by software",
                 f"{two}\nr = nisa.register_alloc(16)\n{one}(o, a.ap(pattern=[[64, 16], [1, 64]], scalar_offset=r, "
                 "indirect_dim=0), dge_mode=nisa.dge_mode.swdge)", HALVES[16:32].T, (HALVES,), told=True),
        *page(one, ("priority 3", f"{two}\n{one}(o, a, priority=3)", SIXTEEN.T, SIXTEEN), core="trn3"),
        *forbidden(
            one, two,
            ("other axes", f"{one}(o, a, axes=(0, 1))"),
            ("software descriptors", f"{one}(o, a, dge_mode=nisa.dge_mode.swdge)"),
            ("not to HBM", f"h = hbm((64, 16), nl.float16)\n{one}(h, a)"),
            ("not to PSUM", f"p = psum((64, 16), nl.float16)\n{one}(p, a)"),
            ("as many dimensions", f"{one}(o.reshape((64, 1, 16)), a)"),
            ("the shape of the result", f"q = sbuf((16, 64), nl.float16)\n{one}(q, a)"),
            ("a priority needs trn3", f"{one}(o, a, priority=1)"),
            ("skips indices alone", f"{one}(o, a, oob_mode=nisa.oob_mode.skip)"),
            ("hardware descriptors: 16 rows", f"q = sbuf((64, 32), nl.float16)\n{one}(q, a, {hw})", HALVES[:32].copy()),
            ("hardware descriptors: 2 bytes", f"q = sbuf((64, 16))\n{one}(q, a, {hw})", SIXTEEN.astype(np.float32)),
            ("hardware descriptors: 128 columns", f"q = sbuf((128, 16), nl.float16)\n"
             f"{one}(q.reshape((128, 16)), a, {hw})", RNG.standard_normal((16, 256)).astype(np.float16)),
            ("hardware descriptors: groups of 16", f"q = sbuf((16, 4, 2), nl.float16)\n{one}(q, a, {hw})",
             cube[:2].copy()),
            ("hardware descriptors: 3 is no group", f"q = sbuf((16, 16, 3), nl.float16)\n{one}(q, a, {hw})",
             RNG.standard_normal((3, 16, 16)).astype(np.float16)),
            inputs=(SIXTEEN,),
        ),
        *forbidden(
            one, "",
            ("gathers by software", indirect.format(n=128, s="", more=", dge_mode=nisa.dge_mode.hwdge")),
            ("indices are uint32", indirect.format(n=128, s="", more=""), rows, indices.astype(np.int32)),
            ("indices lie in SBUF", indirect.format(n=128, s="", more="").replace("=y", "=b")),
            ("more rows than indices", indirect.format(n=256, s="", more="")),
            ("multiples of 16 rows", indirect.format(n=24, s="", more="")),
            ("16 indices at least", indirect.format(n=8, s="[0:8]", more="")),
            ("several columns have 128 indices", indirect.format(n=128, s="[0:64]", more=""), rows, many),
            ("2 bytes", indirect.format(n=128, s="", more="").replace("nl.float16", "nl.float32"),
             rows.astype(np.float32), indices),
            inputs=(rows, indices),
        ),
        *forbidden(one, "", ("gathering needs trn2", indirect.format(n=128, s="", more=""), rows, indices),
         core="trn1"),
        *forbidden(one, two, ("priorities are 0 to 3", f"{one}(o, a, priority=4)"), core="trn3", inputs=(SIXTEEN,)),
    ]  # fmt: skip


def _computations() -> list[PageRule]:
    one = "nisa.dma_compute"
    added = Y.copy() + ROWS[INDEX[:, 0]]
    scattered: Array = np.zeros((256, 64), np.float32)
    scattered[INDEX[:, 0]] = 2 * X
    gather, scatter = AP.format("a", "z", ""), AP.format("h", "y", "")
    return [
        *page(
            one,
            ("16 sources", f"{OUT}\n{one}(o, [x] * 16, nl.add)", 16 * X, X),
            ("scales of 1", f"{OUT}\n{one}(o, [x, y], nl.add, scales=[1.0, 1.0])", X + Y, X, Y),
            ("from HBM to HBM", f"h = hbm(x.shape)\n{one}(h, [a, b], nl.add)\no = h", X + Y, X, Y),
            ("rounds once", f"{OUT}\nn = sbuf(x.shape, nl.bfloat16)\nnisa.memset(n, 1.0)\nw = sbuf(x.shape)\n"
             f"nisa.memset(w, 0.001953125)\n{one}(o, [n, w, w], nl.add)", np.full_like(X, 1.00390625), X),
            ("adds to what it gathers", f"o = sbuf((32, 64))\nnisa.dma_copy(o, b)\n{one}(o, [o, {gather}], nl.add)",
             added, ROWS,
             Y, INDEX),
            ("scatters a sum", "h = hbm((256, 64))\nz0 = sbuf((128, 64))\nnisa.memset(z0, 0.0)\n"
             f"nisa.dma_copy(h[0:128], z0)\n"
             f"nisa.dma_copy(h[128:256], z0)\n{one}({scatter}, [{scatter}, x], nl.add)\n"
             f"{one}({scatter}, [{scatter}, x], nl.add)"
             "\no = h", scattered, X, INDEX),
        ),
        *forbidden(
            one, OUT,
            ("17 sources", f"{one}(o, [x] * 17, nl.add)"),
            ("no other scales", f"{one}(o, [x, y], nl.add, scales=[2.0, 1.0])"),
            ("a scale for each", f"{one}(o, [x, y], nl.add, scales=[1.0])"),
            ("no maximum", f"{one}(o, [x, y], nl.maximum)"),
            ("an operation", f"{one}(o, [x, y])"),
            ("as many elements", f"{one}(o, [x, y[:, 0:32]], nl.add)"),
            ("not from PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n{one}(o, [p, y], nl.add)"),
            ("not to PSUM", f"p = psum(x.shape)\n{one}(p, [x, y], nl.add)"),
            ("skips indices alone", f"{one}(o, [x, y], nl.add, oob_mode=nisa.oob_mode.skip)"),
        ),
        *forbidden(
            one, "o = sbuf((32, 64))\nnisa.dma_copy(o, b)",
            ("indices are unique", f"{one}(o, [o, {gather}], nl.add, unique_indices=False)"),
            ("two sources", f"{one}(o, [o, {gather}, y], nl.add)"),
            inputs=(ROWS, Y, INDEX),
        ),
    ]  # fmt: skip


RULES = (*_copies(), *_modes(), *_transposes(), *_computations())
