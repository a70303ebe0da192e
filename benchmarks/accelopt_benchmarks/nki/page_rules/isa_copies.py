"""nki.isa: copies and fills on the chip, registers, names."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import WHOLE, Array, PageRule, X, Y, forbidden, page, rounded

SMALL = np.arange(-16, 16, dtype=np.int32)[:, None].repeat(16, 1)
TRUTH = (X > 0).astype(np.uint8)
TALL = np.arange(129 * 4, dtype=np.float32).reshape(129, 4)


def _copies() -> list[PageRule]:
    one = "nisa.tensor_copy"
    o, whole = "o = sbuf(x.shape)", "o = sbuf(x.shape, nl.int32)"
    return [
        *page(
            one,
            *((f"{e} copies int32 bit by bit", f"{whole}\n{one}(o, x, engine=nisa.engine.{e})", WHOLE, WHOLE)
              for e in ("vector", "gpsimd")),
            ("other types go through float32", f"o = sbuf(x.shape, nl.uint32)\n{one}(o, x)",
             rounded(WHOLE.astype(np.float32), np.uint32), WHOLE),
            ("ScalarE", f"{o}\n{one}(o, x, engine=nisa.engine.scalar)", X),
            ("the number of elements counts", f"o = sbuf((32, 8, 8))\n{one}(o, x)", X.reshape(32, 8, 8)),
            ("from PSUM", f"p = psum(x.shape)\n{one}(p, x)\n{o}\n{one}(o, p, engine=nisa.engine.scalar)", X),
            ("128 partitions", f"w = sbuf((128, 4))\nnisa.dma_copy(w, a[0:128])\no = sbuf((128, 4))\n{one}(o, w)",
             TALL[:128], TALL),
            ("tfloat32 has 10 bits of mantissa", f"t = sbuf(x.shape, nl.tfloat32)\n{one}(t, x)\n{o}\n{one}(o, t)",
             np.array([[1, 1 + 2**-10]], np.float32).repeat(32, 0), np.array([[1 + 2**-13, 1 + 2**-10]],
             np.float32).repeat(32, 0)),
            inputs=(X,),
        ),
        *forbidden(
            one, o,
            ("no TensorE", f"{one}(o, x, engine=nisa.engine.tensor)"),
            ("no DMA", f"{one}(o, x, engine=nisa.engine.dma)"),
            ("GpSimdE does not read PSUM", f"p = psum(x.shape)\n{one}(p, x)\n{one}(o, p, engine=nisa.engine.gpsimd)"),
            ("as many partitions", f"{one}(o[0:16], x)"),
            ("as many elements", f"{one}(o[:, 0:32], x)"),
            ("from SBUF or PSUM", f"{one}(o, a)"),
            ("not to HBM", f"h = hbm(x.shape)\n{one}(h, x)"),
            ("129 partitions", f"w = sbuf((129, 4))\n{one}(w, w)"),
        ),
        *forbidden(one, o, ("ScalarE needs trn2", f"{one}(o, x, engine=nisa.engine.scalar)"), core="trn1"),
    ]  # fmt: skip


def _fills() -> list[PageRule]:
    one = "nisa.memset"
    full = np.full_like
    return [
        *page(
            one,
            ("whole numbers", f"o = sbuf(x.shape, nl.int32)\n{one}(o, -7)", full(WHOLE, -7), WHOLE),
            ("a whole number in float32", f"o = sbuf(x.shape)\n{one}(o, 3)", full(X, 3)),
            ("GpSimdE", f"o = sbuf(x.shape)\n{one}(o, 2.5, engine=nisa.engine.gpsimd)", full(X, 2.5)),
            ("VectorE reaches PSUM", f"p = psum(x.shape)\n{one}(p, 2.5, engine=nisa.engine.vector)\n"
             "o = sbuf(x.shape)\nnisa.tensor_copy(o, p)", full(X, 2.5)),
            ("rounds to the type", f"n = sbuf(x.shape, nl.bfloat16)\n{one}(n, 1.00390625)\n"
             "o = sbuf(x.shape)\nnisa.tensor_copy(o, n)", full(X, 1.0)),
            inputs=(X,),
        ),
        *page(one, ("0 in packed types", f"q = sbuf((32, 16), nl.float8_e4m3fn_x4)\n{one}(q, 0)\no = x", X, X),
         core="trn3"),
        *forbidden(
            one, "o = sbuf(x.shape)",
            ("no ScalarE", f"{one}(o, 1.0, engine=nisa.engine.scalar)"),
            ("no TensorE", f"{one}(o, 1.0, engine=nisa.engine.tensor)"),
            ("GpSimdE does not reach PSUM", f"p = psum(x.shape)\n{one}(p, 1.0, engine=nisa.engine.gpsimd)"),
            ("not HBM", f"h = hbm(x.shape)\n{one}(h, 1.0)"),
            ("2.0 is no whole number", f"i = sbuf(x.shape, nl.int32)\n{one}(i, 2.0)"),
            ("the value is a constant", f"{one}(o, x)"),
        ),
        *(rule for kind in ("float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4")
          for rule in forbidden(one, f"q = sbuf((32, 16), nl.{kind})", (f"packed types take 0 ({kind})",
                                f"{one}(q, 1)\no = x"), core="trn3")),
    ]  # fmt: skip


def _predicated_copies() -> list[PageRule]:
    one, o = "nisa.tensor_copy_predicated", "o = sbuf(x.shape)\nnisa.memset(o, 5.0)"
    kept = np.where(TRUTH, X, 5)
    return [
        *page(
            one,
            *((f"{kind} predicates", f"{o}\n{one}(o, x, y)", kept, X, TRUTH.astype(kind))
              for kind in ("uint16", "uint32")),
            ("a number", f"{o}\n{one}(o, 2.0, y)", np.where(TRUTH, 2, 5)),
            ("the predicate in PSUM", f"{o}\np = psum(y.shape, nl.uint32)\nnisa.tensor_copy(p, y)\n{one}(o, x, p)",
             kept),
            ("ranks may differ", f"{o}\n{one}(o.reshape((32, 4, 4, 4)), x, y.reshape((32, 4, 4, 4)))", kept),
            inputs=(X, TRUTH),
        ),
        *forbidden(
            one, o,
            ("int32 predicates", f"{one}(o, x, y)", X, TRUTH.astype(np.int32)),
            ("int8 predicates", f"{one}(o, x, y)", X, TRUTH.astype(np.int8)),
            ("as many partitions", f"{one}(o, x, y[0:16])"),
            ("as many elements", f"{one}(o, x, y[:, 0:32])"),
            ("source and predicate in PSUM",
             f"p = psum(x.shape)\nq = psum(x.shape, nl.uint32)\nnisa.tensor_copy(p, x)\n"
             f"nisa.tensor_copy(q, y)\n{one}(o, p, q)"),
            inputs=(X, TRUTH),
        ),
    ]  # fmt: skip


def _registers() -> list[PageRule]:
    """nki.isa.register_alloc, register_move, register_load, register_store, VirtualRegister."""
    o, seven = "o = sbuf((1, 1), nl.int32)", np.array([[7]], np.int32)
    return [
        *page("nisa.register_alloc",
              ("with a number", f"{o}\nr = nisa.register_alloc(7)\nnisa.register_store(o, r)", seven, X),
              ("bounds a loop", "o = sbuf((1, 1))\nnisa.memset(o, 0.0)\nr = nisa.register_alloc(5)\n"
               "for _ in nl.dynamic_range(r):\n    nisa.tensor_scalar(o, o, nl.add, 1.0)", np.array([[5]], np.float32),
               X)),
        *forbidden("nisa.register_alloc", "", ("whole numbers", "r = nisa.register_alloc(2.5)\no = x")),
        *page("nisa.register_move",
              ("a number", f"{o}\nr = nisa.register_alloc()\nnisa.register_move(r, 7)\nnisa.register_store(o, r)",
               seven, X),
              ("another register", f"{o}\nr = nisa.register_alloc()\nnisa.register_move(r, nisa.register_alloc(7))\n"
               "nisa.register_store(o, r)", seven, X)),
        *forbidden("nisa.register_move", "r = nisa.register_alloc()",
                   ("whole numbers", "nisa.register_move(r, 2.5)\no = x"),
                   ("no tensors", "nisa.register_move(r, x)\no = x")),
        *page("nisa.register_load",
              ("from SBUF", f"{o}\nr = nisa.register_alloc()\nnisa.register_load(r, x[0:1, 0:1])\n"
               f"nisa.register_store(o, r)",
               WHOLE[:1, :1], WHOLE),
              ("from HBM", f"{o}\nr = nisa.register_alloc()\nnisa.register_load(r, a[0:1, 0:1])\n"
               f"nisa.register_store(o, r)",
               WHOLE[:1, :1], WHOLE)),
        *forbidden("nisa.register_load", "r = nisa.register_alloc()",
                   ("one element", "nisa.register_load(r, x[0:1, 0:2])\no = x", WHOLE),
                   ("not PSUM", "p = psum((1, 1), nl.int32)\nnisa.tensor_copy(p, x[0:1, 0:1])\n"
                    "nisa.register_load(r, p)\no = x",
                    WHOLE),
                   ("into a register", "nisa.register_load(x[0:1, 0:1], x[0:1, 0:1])\no = x", WHOLE)),
        *page("nisa.register_store",
              ("to HBM", "h = hbm((1, 1), nl.int32)\nnisa.register_store(h, nisa.register_alloc(7))\n"
               f"{o}\nnisa.dma_copy(o, h)", seven, X)),
        *forbidden("nisa.register_store", "r = nisa.register_alloc(7)",
                   ("one element", "o = sbuf((1, 2), nl.int32)\nnisa.register_store(o, r)"),
                   ("not PSUM", "o = psum((1, 1), nl.int32)\nnisa.register_store(o, r)"),
                   ("from a register", f"{o}\nnisa.register_store(o, x[0:1, 0:1])", WHOLE)),
        *page("nisa.VirtualRegister",
              ("ends a loop", "t = sbuf((1, 1), nl.int32)\nnisa.memset(t, 3)\nr = nisa.register_alloc()\n"
               "nisa.register_load(r, t)\no = sbuf((1, 1))\nnisa.memset(o, 0.0)\nwhile r:\n"
               "    nisa.tensor_scalar(o, o, nl.add, 1.0)\n    nisa.tensor_scalar(t, t, nl.subtract, 1.0)\n"
               "    nisa.register_load(r, t)", np.array([[3]], np.float32), X)),
    ]  # fmt: skip


_NAMES = {
    "engine": "tensor=1 vector=5 scalar=2 gpsimd=3 dma=4 sync=6 unknown=0",
    "reduce_cmd": "idle=0 reset=1 reduce=2 reset_reduce=3 load_reduce=4",
    "dge_mode": "unknown=0 swdge=1 hwdge=2 none=3",
    "oob_mode": "error=0 skip=1",
    "nc_version": "gen2=2 gen3=3 gen4=4",
    "dma_engine": "dma=1 gpsimd_dma=2",
}


def _names() -> list[PageRule]:
    """The enumerations; nki.isa.get_nc_version, get_nc_sub_version; the aliases of engines."""
    ones: Array = np.ones_like(X)

    def if_true(test: str) -> str:
        return f"o = sbuf(x.shape)\nnisa.memset(o, 1.0 if {test} else 0.0)"

    return [
        *(rule for kind, members in _NAMES.items() for rule in page(
            f"nisa.{kind}", (members, if_true(" and ".join(
                "nisa.{}.{}.value == {}".format(kind, *m.split("=")) for m in members.split())), ones, X))),
        *page("nisa.matmul_perf_mode", ("none, double_row", if_true(
            "nisa.matmul_perf_mode.none.value == 'none' and nisa.matmul_perf_mode.double_row.value == 'double_row'"),
            ones, X)),
        *page("nisa.engine", *((f"{e}_engine is an alias", if_true(f"nisa.{e}_engine == nisa.engine.{e}"), ones, X)
                               for e in ("tensor", "vector", "scalar", "gpsimd", "unknown"))),
        *(rule for core, version in (("trn1", "gen2"), ("trn2", "gen3"), ("trn3", "gen4")) for rule in page(
            "nisa.get_nc_version", (version, if_true(f"nisa.get_nc_version() == nisa.nc_version.{version}"), ones, X),
            core=core)),
        *page("nisa.get_nc_sub_version", ("0 by default", if_true("nisa.get_nc_sub_version() == 0"), ones, X)),
        *page("nisa.NkiInstruction",
              ("two producers", "o = sbuf(x.shape)\nf = nisa.memset(o, 0.0)\ng = nisa.tensor_copy(o, y)\n"
               "nisa.tensor_copy(o, x).depends_on(f, g)", X, X, Y),
              ("a producer around a loop", "o = sbuf(x.shape)\nf = nisa.memset(o, 0.0)\ndef body(i):\n"
               "    nisa.tensor_copy(o, x).depends_on(f)\nnl.fori_loop(0, 2, body)", X, X),
              ("a chain", "o = sbuf(x.shape)\nf = nisa.memset(o, 0.0)\ng = nisa.tensor_copy(o, y)\n"
               "nisa.tensor_copy(o, x).depends_on(f).depends_on(g)", X, X, Y)),
        *forbidden("nisa.NkiInstruction", "o = sbuf(x.shape)\nnisa.memset(o, 0.0)\nlast = []",
                   ("not out of a loop", "def body(i):\n    last.append(nisa.tensor_copy(o, x))\n"
                    "nl.fori_loop(0, 2, body)\nnisa.tensor_copy(o, y).depends_on(last[0])"),
                   ("not from one loop to another", "def body(i):\n    last.append(nisa.tensor_copy(o, x))\n"
                    "def other(i):\n    nisa.tensor_copy(o, y).depends_on(last[0])\n"
                    "nl.fori_loop(0, 2, body)\nnl.fori_loop(0, 2, other)"),
                   ("instructions alone", "nisa.tensor_copy(o, x).depends_on(x)")),
    ]  # fmt: skip


RULES = (*_copies(), *_fills(), *_predicated_copies(), *_registers(), *_names())
