"""nki.isa: TensorE, transposes on the chip and microscaling."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import RNG, Array, PageRule, X, Y, forbidden, page

PRODUCT = "p = psum((64, 64))\no = sbuf((64, 64))"
OUT = "\nnisa.tensor_copy(o, p)"
#: Whole numbers that every type of 8 bits holds.
S, M = (RNG.integers(-4, 5, (64, 2 * n)).astype(np.float32) for n in (32, 64))
TWO = (
    "p = psum((32, 64))\no = sbuf((32, 64))\ns = sbuf((64, 2, 32), nl.{})\nm = sbuf((64, 2, 64), nl.{})\n"
    "nisa.tensor_copy(s, x.reshape((64, 2, 32)))\nnisa.tensor_copy(m, y.reshape((64, 2, 64)))\n"
)
DOUBLE = "nisa.nc_matmul(p, s, m, perf_mode=nisa.matmul_perf_mode.double_row{})"
IDENTITY = np.eye(32, dtype=np.float32)
TALL = RNG.standard_normal((128, 256), dtype=np.float32)


def _eights(kind: str, other: str) -> str:
    return (
        "p = psum((64, 64))\no = sbuf((64, 64))\n"
        f"s = sbuf(x.shape, nl.{kind})\nm = sbuf(y.shape, nl.{other})\nnisa.tensor_copy(s, x)\nnisa.tensor_copy(m, y)"
    )


def _products() -> list[PageRule]:
    one, plain = "nisa.nc_matmul", "nisa.nc_matmul(p, s, m)"
    doubled = np.einsum("kim,kin->mn", S.reshape(64, 2, 32), M.reshape(64, 2, 64))
    odd = X.copy()
    odd[0, :2] = np.nan, np.inf
    whole = np.round(X * 2).clip(-4, 4)
    small = (whole, whole[:, ::-1].copy())
    wide = RNG.standard_normal((32, 513), dtype=np.float32)
    return [
        *page(
            one,
            *((f"{a} with {b}", f"{_eights(a, b)}\n{plain}{OUT}", small[0].T @ small[1], *small)
              for a, b in (("bfloat16", "float16"), ("float8_e4m3", "bfloat16"), ("float8_e4m3", "float8_e5m2"),
                           ("float32", "tfloat32"))),
            *((f"two {kinds[0]} and {kinds[1]} at once", TWO.format(*kinds) + DOUBLE.format("") + OUT, doubled, S, M)
              for kinds in (("float8_e4m3", "float8_e4m3"), ("float8_e5m2", "float8_e4m3"))),
            ("free dimensions are flat", f"p = psum((64, 4, 16))\no = sbuf((64, 64))\n"
             f"{one}(p, x.reshape((32, 8, 8)), y.reshape((32, 4, 16))){OUT}", X.T @ Y, X, Y),
            ("512 columns", f"p = psum((64, 512))\no = sbuf((64, 512))\n{one}(p, x, y[:, 0:512]){OUT}", X.T @ wide[:,
             :512],
             X, wide),
            ("transposes what is no number",
             f"p = psum((64, 32))\no = sbuf((64, 32))\n{one}(p, x, y, is_transpose=True){OUT}",
             odd.T, odd, IDENTITY),
            ("half of the array", f"{PRODUCT}\n{one}(p, x, y, tile_position=(64, 0), tile_size=(64, 128)){OUT}",
             X.T @ Y, X, Y),
            ("a quarter of the columns", f"p = psum((32, 64))\no = sbuf((32, 64))\n"
             f"{one}(p, x[:, 0:32], y, tile_position=(0, 96), tile_size=(128, 32)){OUT}", X.T[:32] @ Y, X, Y),
            ("accumulates", f"{PRODUCT}\n{one}(p, x, y, accumulate=False)\n{one}(p, x, y, accumulate=True){OUT}",
             2 * X.T @ Y, X, Y),
            ("ones and zeros are told", f"{PRODUCT}\n"
             f"{one}(p, x, y, is_moving_onezero=True, is_stationary_onezero=True){OUT}",
             small[0].T @ small[1], *small),
        ),
        *page(one, ("float8_e4m3fn on trn3", f"{_eights('float8_e4m3fn', 'float8_e5m2')}\n{plain}{OUT}",
                    small[0].T @ small[1], *small),
              ("two float8_e4m3fn at once", TWO.format("float8_e4m3fn", "float8_e4m3fn") + DOUBLE.format("") + OUT,
               doubled, S, M),
              ("writes bfloat16 on trn3", "p = psum((64, 64), nl.bfloat16)\no = sbuf((64, 64))\n"
               f"s = sbuf(x.shape, nl.bfloat16)\nnisa.tensor_copy(s, x)\n{one}(p, s, s){OUT}", whole.T @ whole, whole),
              core="trn3"),
        *forbidden(
            one, PRODUCT,
            ("as many partitions", f"{one}(p, x, y[0:16])"),
            ("128 rows", f"{one}(p, x[:, 0:129], x[:, 0:64])", TALL),
            ("513 columns", f"q = psum((64, 513))\n{one}(q, x, y)", X, wide),
            ("the rows of the product", f"{one}(p[0:32], x, y)"),
            ("the columns of the product", f"{one}(p[:, 0:32], x, y)"),
            ("accumulates on what was written", f"{one}(p, x, y, accumulate=True)"),
            ("accumulates on products", f"nisa.memset(p, 0.0)\n{one}(p, x, y, accumulate=True)"),
            ("not from HBM", f"{one}(p, a, y)"),
            ("parts of 32, 64 or 128", f"{one}(p, x[0:16], y[0:16], tile_position=(0, 0), tile_size=(16, 128))"),
            ("columns start at multiples",
             f"{one}(p[0:32], x[:, 0:32], y, tile_position=(0, 16), tile_size=(128, 32))"),
            ("the contraction fits its part", f"{one}(p, x, x, tile_position=(0, 0), tile_size=(32, 128))", TALL[:64,
             :64].copy()),
            ("parts lie within the array", f"{one}(p, x, y, tile_position=(128, 0), tile_size=(32, 128))"),
            ("float8_e4m3fn needs trn3", f"{_eights('float8_e4m3fn', 'bfloat16')}\n{plain}"),
            ("float32 does not go with float16", f"{_eights('float32', 'float16')}\n{plain}"),
            ("no float8_e8m0fnu", f"{_eights('float8_e8m0fnu', 'bfloat16')}\n{plain}"),
        ),
        *forbidden(
            one, "",
            ("two at once are of 8 bits", TWO.format("bfloat16", "bfloat16") + DOUBLE.format("")),
            ("two at once: not float8_e4m3fn", TWO.format("float8_e4m3fn", "float8_e4m3fn") + DOUBLE.format("")),
            ("two at once and parts of columns", TWO.format("float8_e4m3", "float8_e4m3")
             + DOUBLE.format(", tile_position=(0, 0), tile_size=(128, 32)")),
            ("two at once: the first free dimension is 2", TWO.format("float8_e4m3", "float8_e4m3")
             + DOUBLE.format("").replace("s, m", "s.reshape((64, 4, 16)), m.reshape((64, 4, 32))")),
            inputs=(S, M),
        ),
        *forbidden(one, "", ("two at once needs trn2", TWO.format("float8_e4m3", "float8_e4m3") + DOUBLE.format(""), S,
         M),
                   core="trn1"),
        *forbidden(one, "", ("two kinds of e4m3", f"{_eights('float8_e4m3', 'float8_e4m3fn')}\n{plain}"), core="trn3"),
    ]  # fmt: skip


def _transposes() -> list[PageRule]:
    one = "nisa.nc_transpose"
    turned = "o = sbuf((64, 32))"
    return [
        *page(
            one,
            ("TensorE", f"p = psum((64, 32))\n{turned}\n{one}(p, x, engine=nisa.engine.tensor){OUT}", X.T, X),
            ("VectorE", f"o = sbuf((32, 32))\n{one}(o, x[:, 0:32], engine=nisa.engine.vector)", X[:, :32].T, X),
            ("VectorE from PSUM", "p = psum((32, 32))\nnisa.tensor_copy(p, x[:, 0:32])\no = sbuf((32, 32))\n"
             f"{one}(o, p, engine=nisa.engine.vector)", X[:, :32].T, X),
            ("free dimensions are one", f"p = psum((64, 32))\n{turned}\n{one}(p, x.reshape((32, 8, 8))){OUT}", X.T, X),
            ("128 x 128", f"p = psum((128, 128))\no = sbuf((128, 128))\n{one}(p, x[:, 0:128]){OUT}", TALL[:, :128].T,
             TALL),
        ),
        *forbidden(
            one, "p = psum((64, 32))",
            ("TensorE writes to PSUM", f"{turned}\n{one}(o, x, engine=nisa.engine.tensor)"),
            ("TensorE reads SBUF", f"nisa.tensor_copy(p[0:32, 0:32], x[:, 0:32])\nq = psum((32, 32))\n"
             f"{one}(q, p[0:32, 0:32], engine=nisa.engine.tensor)"),
            ("128 columns", f"q = psum((128, 128))\n{one}(q, x[:, 0:129])", TALL),
            ("one type", f"q = psum((64, 32), nl.bfloat16)\n{one}(q, x)"),
            ("no ScalarE", f"{one}(p, x, engine=nisa.engine.scalar)"),
            ("no GpSimdE", f"o = sbuf((32, 32))\n{one}(o, x[:, 0:32], engine=nisa.engine.gpsimd)"),
            ("the shape of the result", f"q = psum((32, 64))\n{one}(q, x)"),
            ("not from HBM", f"{one}(p, a)"),
        ),
    ]  # fmt: skip


def _quantised(x: Array, kind: str) -> Array:
    """The scale of nki.isa.quantize_mx: floor(log2(amax)) - (Emax - 1), in bytes; 8 partitions by 4 elements."""
    p, f = x.shape
    largest = np.abs(x).reshape(p // 8, 8, f // 4, 4).max((1, 3))
    with np.errstate(divide="ignore"):
        exponent = np.where(
            largest > 0, np.floor(np.log2(largest)) - ((8 if kind == "e4m3fn" else 15) - 1), -127
        )
    bytes_of: Array = (exponent + 127).astype(np.uint8)
    return bytes_of


def _microscaling() -> list[PageRule]:
    one, product = "nisa.quantize_mx", "nisa.nc_matmul_mx"
    values = (S[:32, :64] * np.array([1, 16], np.float32).repeat(32)).astype(np.float32)
    values[0:8, 0:4] = 0
    head = (
        "h = sbuf(x.shape, nl.bfloat16)\nnisa.tensor_copy(h, x)\nq = sbuf((32, 16), nl.float8_{}_x4)\n"
        "s = sbuf((32, 16), nl.uint8)\nnisa.memset(s, 0)\n"
    )
    quantise = head.format("e4m3fn") + f"{one}(q, h, s)\n"
    square = np.einsum("pmi,pni->mn", values.reshape(32, 16, 4), values.reshape(32, 16, 4))
    four = S.reshape(64, 16, 4).astype(np.float64)
    large = (
        "h = sbuf(x.shape, nl.bfloat16)\nnisa.tensor_copy(h, x)\nq = sbuf((64, 16), nl.float8_e4m3fn_x4)\n"
        "s = sbuf((64, 16), nl.uint8)\nnisa.memset(s, 0)\n"
    )
    out = "p = psum((16, 16))\no = sbuf((16, 16))\n"
    call = f"{product}(p, q, q, s, s)"
    return [
        *page(
            one,
            *((f"scales of {kind}", head.format(kind) + f"{one}(q, h, s)\no = sbuf((4, 16), nl.uint8)\n"
               "nisa.tensor_copy(o, s[0:4])", _quantised(values, kind), values) for kind in ("e4m3fn", "e5m2")),
            ("scales among others", head.format("e4m3fn") + f"{one}(q, h, s[4:8])\no = sbuf((8, 16), nl.uint8)\n"
             "nisa.tensor_copy(o, s[0:8])", np.vstack([np.zeros((4, 16), np.uint8), _quantised(values, "e4m3fn")]),
             values),
            ("scales of their own type", head.format("e4m3fn").replace("s = sbuf((32, 16), nl.uint8)\n"
             "nisa.memset(s, 0)",
             "s = sbuf((32, 16), nl.float8_e8m0fnu)") + f"{one}(q, h, s[0:4])\no = x", values, values),
            core="trn3",
        ),
        *forbidden(
            one, head.format("e4m3fn") + "o = x",
            ("not float32", f"{one}(q, x, s)"),
            ("one of the packed types", f"w = sbuf((32, 16), nl.float8_e4m3fn)\n{one}(w, h, s)"),
            ("not float4_e2m1fn_x4", f"w = sbuf((32, 16), nl.float4_e2m1fn_x4)\n{one}(w, h, s)"),
            ("scales of 8 bits", f"w = sbuf((32, 16), nl.int8)\n{one}(q, h, w)"),
            ("32 partitions", f"{one}(q[0:16], h[0:16], s)"),
            ("multiples of 4 elements", f"{one}(q, h[:, 0:62], s)"),
            ("a quarter of the elements", f"{one}(q[:, 0:8], h, s)"),
            ("not from PSUM", f"w = psum(x.shape, nl.bfloat16)\nnisa.tensor_copy(w, x)\n{one}(q, w, s)"),
            core="trn3", inputs=(values,),
        ),
        *forbidden(one, head.format("e4m3fn"), ("needs trn3", f"{one}(q, h, s)"), inputs=(values,)),
        *page(
            product,
            ("a product", f"{quantise}{out}{call}{OUT}", square, values),
            ("accumulates", f"{quantise}{out}{call}\n{call}{OUT}", 2 * square, values),
            ("overwrites", f"{quantise}{out}{call}\n{product}(p, q, q, s, s, accumulate=False){OUT}", square, values),
            ("two quadrants", f"{large}{one}(q, h, s)\n{out}{call}{OUT}", np.einsum("pmi,pni->mn", four, four), S),
            ("half of the array", f"{quantise}{out}{product}(p, q, q, s, s, (64, 0), (64, 128)){OUT}", square, values),
            ("scales among others", head.format("e4m3fn") + f"{one}(q, h, s[4:8])\n{out}"
             f"{product}(p, q, q, s[4:8], s[4:8]){OUT}", square, values),
            core="trn3",
        ),
        *forbidden(
            product, f"{quantise}{out}",
            ("packed types", f"{product}(p, h, q, s, s)"),
            ("an even number of columns", f"{product}(p[0:15], q[:, 0:15], q, s, s)"),
            ("32 partitions", f"{product}(p, q[0:16], q[0:16], s, s)"),
            ("as many partitions", f"w = sbuf((64, 16), nl.float8_e4m3fn_x4)\nnisa.memset(w, 0)\n"
             f"{product}(p, q, w, s, s)"),
            ("writes to PSUM", f"w = sbuf((16, 16))\n{product}(w, q, q, s, s)"),
            ("writes float32 or bfloat16", f"w = psum((16, 16), nl.float16)\n{product}(w, q, q, s, s)"),
            ("scales of 8 bits", f"w = sbuf((32, 16), nl.int8)\nnisa.memset(w, 0)\n{product}(p, q, q, w, s)"),
            ("parts of rows only", f"{product}(p, q, q, s, s, (0, 0), (32, 64))"),
            ("parts start in the first column", f"{product}(p, q, q, s, s, (0, 64), (32, 128))"),
            ("parts start at multiples", f"{product}(p, q, q, s, s, (16, 0), (32, 128))"),
            ("the rows of the product", f"{product}(p[0:8], q, q, s, s)"),
            ("accumulates on what was written", f"{product}(p, q, q, s, s, accumulate=True)"),
            core="trn3", inputs=(values,),
        ),
        *forbidden(product, "q = sbuf((32, 16), nl.float8_e4m3fn_x4)\ns = sbuf((32, 16), nl.uint8)\nnisa.memset(q, 0)\n"
                   f"nisa.memset(s, 0)\n{out}", ("needs trn3", call), inputs=(values,)),
    ]  # fmt: skip


RULES = (*_products(), *_transposes(), *_microscaling())
