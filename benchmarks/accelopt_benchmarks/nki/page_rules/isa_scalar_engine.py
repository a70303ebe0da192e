"""nki.isa: what runs on ScalarE, and exponential and reciprocal of VectorE."""

from __future__ import annotations

import math

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import COLUMN, WHOLE, Array, PageRule, X, forbidden, page

OUT, RESULT = "o = sbuf(x.shape)", "o = sbuf(x.shape)\nr = sbuf((32, 1))"
BAD = np.ones((32, 2), np.float32)
ONES = np.ones_like(X)
_erf = np.vectorize(math.erf)


def _functions() -> dict[str, tuple[Array, Array]]:
    """nki.api.shared, Supported Activation Functions: inputs inside of each valid range, and the value."""
    x: Array = X.astype(np.float64)
    positive: Array = np.abs(x) + 0.1
    sigmoid, tanh_root = 1 / (1 + np.exp(-x)), math.sqrt(2 / math.pi)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    normal = (1 + _erf(x / math.sqrt(2))) / 2
    quick = 1 / (1 + np.exp(-1.702 * x))
    values = {
        "copy": x, "square": x * x, "sigmoid": sigmoid, "relu": np.maximum(x, 0), "gelu": x * normal,
        "gelu_dx": normal + x * density, "gelu_apprx_tanh": x * (1 + np.tanh(tanh_root * (x + 0.044715 * x**3))) / 2,
        "gelu_apprx_sigmoid": x * quick, "gelu_apprx_sigmoid_dx": quick + 1.702 * x * quick * (1 - quick),
        "silu": x * sigmoid, "silu_dx": sigmoid * (1 + x * (1 - sigmoid)), "tanh": np.tanh(x),
        "softplus": np.log1p(np.exp(x)), "mish": x * np.tanh(np.log1p(np.exp(x))), "erf": _erf(x),
        "erf_dx": 2 / math.sqrt(math.pi) * np.exp(-x * x), "exp": np.exp(x), "sign": np.sign(x), "abs": np.abs(x),
        "reciprocal": 1 / x,
    }  # fmt: skip
    ranged = {"log": np.log(positive), "sqrt": np.sqrt(positive), "rsqrt": 1 / np.sqrt(positive)}
    angles = np.clip(x, -math.pi, math.pi)
    slopes = np.clip(x, -math.pi / 2, math.pi / 2)
    return {
        **{name: (X, value) for name, value in values.items()},
        **{name: (positive, value) for name, value in ranged.items()},
        "sin": (angles, np.sin(angles)), "arctan": (slopes, np.arctan(slopes)),
    }  # fmt: skip


def _activations() -> list[PageRule]:
    one = "nisa.activation"
    total = np.exp(X.astype(np.float64)).sum(1, keepdims=True)
    sum_of = f"{one}({{}}, nl.exp, x, reduce_op=nl.add, reduce_res={{}}, reduce_cmd=nisa.reduce_cmd.{{}})"
    aliased = np.exp(X)
    aliased[:, :1] = total
    first, idle = sum_of.format("d", "None", "reset_reduce"), sum_of.format("d", "o", "idle")
    clear = sum_of.format("d", "None", "reset")
    return [
        *page(one, *((name, f"{OUT}\n{one}(o, nl.{name}, x)", value.astype(np.float32), x.astype(np.float32))
                     for name, (x, value) in _functions().items())),
        *page(
            one,
            ("scale and bias are vectors", f"{OUT}\n{one}(o, nl.exp, x, bias=y, scale=y)", np.exp(X * COLUMN + COLUMN),
             X, COLUMN),
            ("scale and bias are numbers", f"{OUT}\n{one}(o, nl.tanh, x, bias=0.5, scale=2.0)", np.tanh(X * 2 + 0.5)),
            ("bias of another type", f"{OUT}\nn = sbuf((32, 1), nl.bfloat16)\nnisa.memset(n, 0.5)\n"
             f"{one}(o, nl.tanh, x, n)",
             np.tanh(X + 0.5)),
            ("reset clears the registers", f"d = sbuf(x.shape)\no = sbuf((32, 1))\n{first}\n{clear}\n{idle}",
             np.zeros((32, 1), np.float32)),
            ("the result may lie in what is written", f"{OUT}\n{sum_of.format('o', 'o[:, 0:1]', 'reset_reduce')}",
             aliased),
            ("from and to PSUM", f"p = psum(x.shape)\nq = psum(x.shape)\n{one}(p, nl.copy, x)\n{one}(q, nl.square, p)\n"
             f"{OUT}\nnisa.tensor_copy(o, q)", X * X),
            ("a reduction in PSUM", f"d = sbuf(x.shape)\np = psum((32, 1))\n{sum_of.format('d', 'p', 'reset_reduce')}\n"
             "o = sbuf((32, 1))\nnisa.tensor_copy(o, p)", total),
            inputs=(X,),
        ),
        *forbidden(
            one, RESULT,
            *((f"{name} is no function of ScalarE", f"{one}(o, nl.{name}, x)")
              for name in ("add", "cos", "tan", "maximum", "floor")),
            ("scale is float32", f"n = sbuf((32, 1), nl.bfloat16)\nnisa.memset(n, 1.0)\n{one}(o, nl.exp, x, scale=n)"),
            ("bias is not tfloat32", f"n = sbuf((32, 1), nl.tfloat32)\nnisa.memset(n, 1.0)\n"
             f"{one}(o, nl.exp, x, bias=n)"),
            ("bias is a column", f"{one}(o, nl.exp, x, bias=y)", X, BAD),
            ("scale is a column", f"{one}(o, nl.exp, x, scale=y)", X, BAD),
            ("bias has the partitions of data", f"{one}(o, nl.exp, x, bias=y[0:16])", X, COLUMN),
            ("as many partitions", f"{one}(o[0:16], nl.exp, x)"),
            ("as many elements", f"{one}(o[:, 0:32], nl.exp, x)"),
            ("not from HBM", f"{one}(o, nl.exp, a)"),
            ("a column is reduced", f"{sum_of.format('o', 'y', 'reset_reduce')}", X, BAD),
            ("loads no registers", f"{sum_of.format('o', 'r', 'load_reduce')}"),
        ),
        *forbidden(one, RESULT, ("reciprocal has no bias", f"{one}(o, nl.reciprocal, x, bias=y)", X, COLUMN),
         core="trn1"),
        *(PageRule(one, f"{name} of {value:.4g} may be invalid", f"{OUT}\n{one}(o, nl.{name}, x)\no = x",
                   np.full_like(X, value), (np.full_like(X, value),), told=True) for name, value in (
            ("sin", -3.2), ("arctan", 1.6), ("log", 2.0**65), ("log", 0.0), ("sqrt", -1.0), ("sqrt", 2.0**119),
            ("rsqrt", 2.0**98), ("rsqrt", 0.0), ("reciprocal", 0.0), ("reciprocal", 2.0**43))),
        PageRule(one, "sin of 9.0 is some 27.65", f"{OUT}\n{one}(o, nl.sin, x, scale=0.9)", np.full_like(X, 27.6525),
                 (np.full_like(X, 10),), told=True),
        *page(
            "nisa.activation_reduce",
            ("adds", f"{RESULT}\nnisa.activation_reduce(o, nl.exp, x, nl.add, r)\no = r", total, X),
            ("scales before", f"{RESULT}\nnisa.activation_reduce(o, nl.exp, x, nl.add, r, bias=y, scale=2.0)\no = r",
             np.exp(X.astype(np.float64) * 2 + COLUMN).sum(1, keepdims=True), X, COLUMN),
            ("all free dimensions", "d = sbuf((32, 8, 8))\no = sbuf((32, 1))\n"
             "nisa.activation_reduce(d, nl.exp, x.reshape((32, 8, 8)), nl.add, o)", total, X),
        ),
        *forbidden(
            "nisa.activation_reduce", RESULT,
            ("a column is reduced", "nisa.activation_reduce(o, nl.exp, x, nl.add, y)", X, BAD),
            ("trn1 adds only", "nisa.activation_reduce(o, nl.exp, x, nl.maximum, r)"),
            ("as many elements", "nisa.activation_reduce(o[:, 0:32], nl.exp, x, nl.add, r)"), core="trn1"),
    ]  # fmt: skip


def _activations_of_trn3() -> list[PageRule]:
    one, tail = "nisa.activate2", "o = sbuf(x.shape)\nnisa.activate2(o, nl.tanh, x, {})"
    chain = (
        f"{RESULT}\n{one}(o, nl.copy, x, 0.0, 0.0, nl.bypass, nl.bypass, reduce_op=nl.{{}}, reduce_res=r, "
        "reduce_cmd=nisa.reduce_cmd.reset_reduce)\no = r"
    )
    return [
        *page(
            one,
            ("multiply, add", tail.format("2.0, 0.5, nl.multiply, nl.add"), np.tanh(X * 2 + 0.5)),
            ("multiply, subtract", tail.format("2.0, 0.5, nl.multiply, nl.subtract"), np.tanh(X * 2 - 0.5)),
            ("multiply", tail.format("2.0, 0.0, nl.multiply, nl.bypass"), np.tanh(X * 2)),
            ("add", tail.format("2.0, 0.0, nl.add, nl.bypass"), np.tanh(X + 2)),
            ("subtract", tail.format("2.0, 0.0, nl.subtract, nl.bypass"), np.tanh(X - 2)),
            ("nothing", tail.format("2.0, 0.0, nl.bypass, nl.bypass"), np.tanh(X)),
            ("reversed", tail.format("2.0, 0.5, nl.subtract, nl.bypass, reverse0=True"), np.tanh(2 - X)),
            ("the second reversed", tail.format("2.0, 0.5, nl.multiply, nl.subtract, reverse1=True"),
             np.tanh(0.5 - X * 2)),
            ("prelu", f"{OUT}\n{one}(o, nl.prelu, x, 0.0, 0.0, nl.bypass, nl.bypass, relu_param=0.25)",
             np.where(X > 0, X, 0.25 * X)),
            ("maximum", chain.format("maximum"), X.max(1, keepdims=True)),
            ("minimum", chain.format("minimum"), X.min(1, keepdims=True)),
            ("add reduces", chain.format("add"), X.sum(1, keepdims=True)),
            ("its registers go on", f"{RESULT}\n" + "".join(
                f"{one}(o, nl.copy, x, 0.0, 0.0, nl.bypass, nl.bypass, reduce_op=nl.add, reduce_res=r, "
                f"reduce_cmd=nisa.reduce_cmd.{c})\n" for c in ("reset_reduce", "reduce")) + "o = r",
             2 * X.sum(1, keepdims=True)),
            core="trn3", inputs=(X,),
        ),
        *page(one, ("vectors", tail.format("y, y, nl.multiply, nl.add"), np.tanh(X * COLUMN + COLUMN), X, COLUMN),
         core="trn3"),
        *forbidden(
            one, OUT,
            *((f"not {first}, {second}", f"{one}(o, nl.tanh, x, 1.0, 1.0, nl.{first}, nl.{second})") for first,
             second in (
                ("add", "multiply"), ("bypass", "add"), ("subtract", "add"), ("multiply", "multiply"), ("divide",
                 "bypass"))),
            ("not multiply in a reduction", f"r = sbuf((32, 1))\n{one}(o, nl.tanh, x, 1.0, 1.0, nl.multiply, nl.add, "
             "reduce_op=nl.multiply, reduce_res=r, reduce_cmd=nisa.reduce_cmd.reset_reduce)"),
            ("operands of one type", f"n = sbuf((32, 1), nl.bfloat16)\nnisa.memset(n, 1.0)\nm = sbuf((32, 1))\n"
             f"nisa.memset(m, 1.0)\n{one}(o, nl.tanh, x, n, m, nl.multiply, nl.add)"),
            ("a column", f"{one}(o, nl.tanh, x, y, 0.0, nl.multiply, nl.bypass)", X, BAD),
            ("reverse needs an operation", f"{one}(o, nl.tanh, x, 1.0, 1.0, nl.bypass, nl.bypass, reverse0=True)"),
            ("not from HBM", f"{one}(o, nl.tanh, a, 1.0, 1.0, nl.multiply, nl.add)"),
            ("as many elements", f"{one}(o[:, 0:32], nl.tanh, x, 1.0, 1.0, nl.multiply, nl.add)"), core="trn3"),
        *forbidden(one, OUT, ("needs trn3", f"{one}(o, nl.tanh, x, 1.0, 1.0, nl.multiply, nl.add)")),
    ]  # fmt: skip


def _exponentials() -> list[PageRule]:
    one = "nisa.exponential"
    total = np.exp(X).sum(1, keepdims=True)

    def reduced(*rest: str) -> str:
        calls = "\n".join(f"{one}(d, x, reduce_res=o, reduce_cmd=nisa.reduce_cmd.{text})" for text in rest)
        return f"d = sbuf(x.shape)\no = sbuf((32, 1))\n{calls}"

    return [
        *page(
            one,
            ("less a maximum", f"{OUT}\n{one}(o, x, max_value=2.0)", np.exp(X - 2), X),
            ("less a vector", f"{OUT}\n{one}(o, x, max_value=y)", np.exp(X - COLUMN), X, COLUMN),
            ("adds", reduced("reset_reduce"), total, X),
            ("goes on", reduced("reset_reduce", "reduce"), 2 * total, X),
            ("loads", reduced("load_reduce, reduce_init=10.0"), 10 + total, X),
            ("shares registers with tensor_scalar_reduce", "d = sbuf(x.shape)\no = sbuf((32, 1))\n"
             "nisa.tensor_scalar_reduce(d, x, nl.multiply, 1.0, nl.add)\n"
             f"{one}(d, x, reduce_res=o, reduce_cmd=nisa.reduce_cmd.reduce)", X.sum(1, keepdims=True) + total, X),
            ("of uint32", f"{OUT}\nw = sbuf(x.shape, nl.uint32)\nnisa.tensor_copy(w, x)\n{one}(o, w)",
             np.exp(np.maximum(np.rint(X), 0)), X),
            core="trn3",
        ),
        *forbidden(
            one, RESULT,
            ("reduce_init only loads",
             f"{one}(o, x, reduce_res=r, reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_init=1.0)"),
            ("does not only reset", f"{one}(o, x, reduce_res=r, reduce_cmd=nisa.reduce_cmd.reset)"),
            ("uint32 is not written", f"w = sbuf(x.shape, nl.uint32)\n{one}(w, x)"),
            ("whole numbers are not reduced", f"w = sbuf((32, 1), nl.int32)\n{one}(o, x, reduce_res=w, "
             "reduce_cmd=nisa.reduce_cmd.reset_reduce)"),
            ("a maximum is float32", f"n = sbuf((32, 1), nl.bfloat16)\nnisa.memset(n, 1.0)\n{one}(o, x, max_value=n)"),
            ("a maximum is a column", f"{one}(o, x, max_value=y)", X, BAD),
            ("as many partitions", f"{one}(o[0:16], x)"),
            ("as many elements", f"{one}(o[:, 0:32], x)"),
            ("four dimensions", f"{one}(o.reshape((32, 2, 2, 4, 4)), x.reshape((32, 2, 2, 4, 4)))"),
            core="trn3",
        ),
    ]  # fmt: skip


def _reciprocals() -> list[PageRule]:
    one = "nisa.reciprocal"
    return [
        *page(one, ("values", f"{OUT}\n{one}(o, x)", 1 / X, X),
              ("of whole numbers", f"{OUT}\n{one}(o, x)", 1 / WHOLE.astype(np.float32), WHOLE),
              ("from PSUM", f"p = psum(x.shape)\nnisa.tensor_copy(p, x)\n{OUT}\n{one}(o, p)", 1 / X, X)),
        *forbidden(one, OUT, ("as many partitions", f"{one}(o[0:16], x)"), ("as many elements",
         f"{one}(o[:, 0:32], x)"),
                   ("not from HBM", f"{one}(o, a)")),
    ]  # fmt: skip


RULES = (*_activations(), *_activations_of_trn3(), *_exponentials(), *_reciprocals())
