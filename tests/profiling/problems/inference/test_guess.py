"""What a call is guessed from, without running anything: uses, docstrings, comments, names."""

from __future__ import annotations

import ast

import pytest

from accelopt_profiling.problems.inference.arguments import InferredCall
from accelopt_profiling.problems.inference.docstring_shapes import (
    docstring_shapes,
    docstring_types,
    parse_shapes,
)
from accelopt_profiling.problems.inference.entries import entry_candidates
from accelopt_profiling.problems.inference.guess import guess_call
from accelopt_profiling.problems.inference.pointers import (
    byte_pointers,
    integer_pointers,
    integer_scalars,
    packed_pointers,
    pointers,
    single_pointers,
)
from accelopt_profiling.problems.inference.usage import function_uses

KERNEL = """
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)

"""


def guessed(text: str, kernel: str = "k") -> InferredCall:
    tree = ast.parse(text)
    entry = entry_candidates(tree, [kernel])[0]
    return guess_call(text, entry, function_uses(tree, {kernel, "read"}))


#: The host function, and what its arguments become: dimensions of tensors, values of the others.
GUESSED = {
    "unpacked": ("def f(q):\n B, T, H, K = q.shape\n k[(1,)](q, q, 1, 2)", {"q": ["B", "T", "H", "K"]}),
    "unpacked together": (
        "def f(q, v):\n B, T, H, K, V = *q.shape, v.shape[-1]\n k[(1,)](q, v, 1, 2)",
        {"q": ["B", "T", "H", "K"], "v": ["B", "T", "H", "V"]},
    ),
    "a star in front": ("def f(x):\n *lead, D = x.shape\n k[(1,)](x, x, 1, 2)", {"x": ["rows", "D"]}),
    "dim is asserted": (
        "def f(x):\n assert x.dim() == 3\n k[(1,)](x, x, 1, 2)",
        {"x": ["batch", "rows", "columns"]},
    ),
    "strides": ("def f(x):\n k[(1,)](x, x, x.stride(2), 2)", {"x": ["batch", "rows", "columns"]}),
    "a docstring": (
        'def f(q, w):\n """\n q: queries of shape `[B, T, H]`.\n w (torch.Tensor): [H]\n """\n k[(1,)](q, w, 1, 2)',
        {"q": ["B", "T", "H"], "w": ["H"]},
    ),
    "a docstring of two ranks": (
        'def f(q, w):\n """\n q: (B, T) or (B, T, H)\n w: (T,) or (T, H)\n """\n if w.dim() == 1:\n'
        "  w = w[:, None]\n _, T, H = q.shape\n k[(1,)](q, w, 1, 2)",
        {"q": ["B", "T", "H"], "w": ["T", "H"]},
    ),
    "a number that may be None": (
        "def f(x, softcap):\n M, K = x.shape\n k[(1,)](x, x, softcap, HAS=softcap is not None)",
        {"x": ["M", "K"], "softcap": "None"},
    ),
    "a comment": ("def f(\n  x,  # [M, K]\n):\n k[(1,)](x, x, 1, 2)", {"x": ["M", "K"]}),
    "a weight follows": (
        "def f(x, weight, eps):\n M, N = x.shape\n k[(1,)](x, weight, eps, 2)",
        {"x": ["M", "N"], "weight": ["N"], "eps": "1e-6"},
    ),
    "defaults stay": ("def f(x, bias=None, eps=1e-6):\n k[(1,)](x, x, 1, 2)", {"x": ["rows", "columns"]}),
    "annotations": (
        "def f(x: torch.Tensor, dim: int, inplace: bool, kind: str):\n assert kind in ('sum', 'mean')\n"
        " k[(1,)](x, x, dim, 2)",
        {"x": ["rows", "columns"], "dim": "-1", "inplace": "False", "kind": "'sum'"},
    ),
    "a dtype": (
        "def f(x, out_dtype):\n y = torch.empty(1, dtype=out_dtype)\n k[(1,)](x, y, 1, 2)",
        {"x": ["rows", "columns"], "out_dtype": "torch.float32"},
    ),
    "what a kernel takes as a number": (
        "def f(x, shift):\n k[(1,)](x, x, shift, 2)",
        {"x": ["rows", "columns"], "shift": "0"},
    ),
    "an autograd function": (
        "class F(torch.autograd.Function):\n @staticmethod\n def forward(ctx, x):\n  M, N = x.shape\n"
        "  k[(1,)](x, x, 1, 2)",
        {"x": ["M", "N"]},
    ),
    "an autograd function of class methods": (
        "class F(torch.autograd.Function):\n @classmethod\n def forward(self, ctx, x):\n  M, N = x.shape\n"
        "  k[(1,)](x, x, 1, 2)",
        {"x": ["M", "N"]},
    ),
    "a nested kernel's caller": (
        "def f(x):\n @triton.jit\n def k(p, q, n):\n  tl.store(p + n, 1)\n k[(1,)](x, x, 1)",
        {"x": ["rows", "columns"]},
    ),
    "values follow keys": (
        "def f(q, keys, values):\n B, M, D = q.shape\n _, N, _ = keys.shape\n k[(1,)](q, keys, values.stride(2), 2)",
        {"q": ["B", "M", "D"], "keys": ["B", "N", "D"], "values": ["B", "N", "D"]},
    ),
    "rows with labels": (
        "def f(x, target):\n BT, V = x.shape\n k[(1,)](x, target, target.stride(-1), 2)",
        {"x": ["BT", "vocab"], "target": ["BT"]},
    ),
    "a number of elements": (
        "def f(x, input_size):\n M, N = x.shape\n k[(1,)](x, x, input_size, 2)",
        {"x": ["M", "N"], "input_size": "M * N"},
    ),
    "an address that a function of the kernel gets": (
        "@triton.jit\ndef read(at):\n return tl.load(at)\n@triton.jit\ndef k(p, s, o, n):\n"
        " at = s + tl.program_id(0) * n\n tl.store(o + tl.program_id(0), read(at) + tl.load(p + n))\n"
        "def f(x, k_scale):\n k[(1,)](x, k_scale, x, 1)",
        {"x": ["rows", "columns"], "k_scale": ["rows", "columns"]},
    ),
    "no caller": (
        "",
        {"x_ptr": ["rows", "columns"], "y_ptr": ["rows", "columns"], "n": "rows * columns", "BLOCK": "64"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GUESSED)
def test_arguments_follow_from_the_source(case: str) -> None:
    host, expected = GUESSED[case]
    call = guessed(host if "def k(" in host else KERNEL + host)
    assert {a.name: a.dims if a.kind == "tensor" else a.value for a in call.arguments} == expected


def test_a_kernel_without_a_caller_gets_a_grid() -> None:
    assert guessed(KERNEL).grid == ["cdiv(n, BLOCK)"]
    several = KERNEL.replace("tl.program_id(0) * BLOCK", "tl.program_id(0) * (2 * BLOCK)")
    assert guessed(several).grid == ["cdiv(n, 2 * BLOCK)"]
    blocks = KERNEL.replace(
        "    at = tl.program_id(0) * BLOCK",
        "    PAIR: tl.constexpr = 2 * 4\n    first = tl.program_id(0) * PAIR\n    at = first * BLOCK",
    )
    assert guessed(blocks).grid == ["cdiv(n, 2 * 4 * BLOCK)"]


def test_constants_of_a_kernel_are_what_it_compares_them_with() -> None:
    text = """
@triton.jit
def read(x, kind: tl.constexpr, dropout: tl.constexpr):
    if kind == 'tanh':
        x = x + 1
    elif kind == 'relu' or not dropout:
        x = x + 2
    if dropout:
        x = x + 3
    return x

@triton.jit
def k(x_ptr, y_ptr, kind: tl.constexpr, dropout: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, read(tl.load(x_ptr + at), kind, dropout))
"""
    call = guessed(text)
    values = {a.name: a.value for a in call.arguments}
    assert (values["kind"], values["dropout"]) == ("'tanh'", "False")


def test_integers_of_a_kernel_are_those_that_offsets_meet() -> None:
    (kernel,) = ast.parse(
        "def k(x, n, groups, length, eps, out):\n"
        " at = tl.program_id(0) * groups + tl.arange(0, 64)\n"
        " row = at // 2\n"
        " v = tl.load(x + at, mask=row < n) + eps\n"
        " for i in range(length): tl.store(out + at, f(v) << 4)\n"
    ).body
    assert isinstance(kernel, ast.FunctionDef)
    assert integer_scalars(kernel) & {"n", "groups", "length", "eps"} == {"n", "groups", "length"}
    assert packed_pointers(kernel, {}) == {}
    (kernel,) = ast.parse("def k(x, o): tl.store(o, tl.load(x + 1, other=0).to(tl.uint8))").body
    assert isinstance(kernel, ast.FunctionDef)
    assert byte_pointers(kernel) == {"x": "uint8"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("v = tl.load(q + at)\n low = v & 0xF\n high = v >> 4", {"q": "uint8"}),
        ("v = tl.load(q + at)\n part = (v >> shifts) & 0xF", {"q": "int32"}),
        ("v = tl.load(q + at)\n part = (v >> 28) & 0xF", {"q": "int32"}),
        ("v = tl.load(q + at)\n part = unpack(v, 3)", {"q": "uint8"}),
        ("v = tl.load(q + at)\n part = unpack(word=v)", {"q": "uint8"}),
        ("v = tl.load(q + at)\n part = unpack(3, v)", {}),
    ],
)
def test_values_that_are_taken_apart_are_bytes_where_no_bit_beyond_is_looked_at(
    body: str, expected: dict[str, str]
) -> None:
    helper, kernel = ast.parse(
        f"def unpack(word, scale):\n return (word & 15) * scale\ndef k(q, at):\n {body}"
    ).body
    assert isinstance(helper, ast.FunctionDef)
    assert isinstance(kernel, ast.FunctionDef)
    assert packed_pointers(kernel, {"unpack": helper}) == expected


def test_equal_names_have_equal_sizes_and_different_ones_different_sizes() -> None:
    call = guessed(KERNEL + "def f(a, b):\n M, K = a.shape\n K, N = b.shape\n k[(1,)](a, b, 1, 2)")
    assert sorted(call.sizes) == ["K", "M", "N"]
    assert len(set(call.sizes.values())) == 3


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("def _f(x): k[(1,)](x)\ndef g(x): _f(x)\n", "g"),
        ("def f_backward(x): k[(1,)](x)\ndef f_forward(x): k[(1,)](x)\n", "f_forward"),
        (
            "class F(torch.autograd.Function):\n def forward(ctx, x): k[(1,)](x)\ndef _g(x): F.apply(x)\n",
            "F.apply",
        ),
        ("def test_f(): k[(1,)](1)\ndef _f(x): k[(1,)](x)\n", "_f"),
        ("try:\n import a\nexcept ImportError:\n a = 1\nelse:\n def f(x): k[(1,)](x)\n", "f"),
        ("@triton.jit\ndef tanh(x): return x\n", "k"),
    ],
)
def test_the_entry_is_what_a_person_would_call(text: str, first: str) -> None:
    assert entry_candidates(ast.parse(KERNEL + text), ["k"])[0].name == first


def test_pointers_are_what_addresses_start_from() -> None:
    (kernel,) = ast.parse(
        "def k(x, index, scale, out, stride, n):\n"
        " row = tl.load(index + tl.program_id(0))\n"
        " p = x + row * stride\n"
        " tl.store(out + row, tl.load(p + n) * tl.load(scale))\n"
    ).body
    assert isinstance(kernel, ast.FunctionDef)
    assert pointers(kernel) & {"x", "index", "scale", "out", "stride", "n"} == {"x", "index", "scale", "out"}
    assert integer_pointers(kernel) == {"index"}
    assert single_pointers(kernel) == {"scale"}


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("queries of shape `[B, T, H, K]`", [["B", "T", "H", "K"]]),
        ("(batch, seq, hidden)", [["batch", "seq", "hidden"]]),
        ("(torch.Tensor, optional)", []),
        ("shape (N,)", [["N"]]),
        ("[B, T, 2 * D]", [["B", "T", "2 * D"]]),
        ("of shape [rows, D/2]", [["rows", "D//2"]]),
        ("of shape [batch_dim/BLOCK_SIZE_BATCH, feat_dim]", [["batch_dim", "feat_dim"]]),
        ("(M, K) or (B, M, K)", [["M", "K"], ["B", "M", "K"]]),
        ("no shape (see above)", []),
        ("[E, H, 2, I], weights on HBM", [["E", "H", "2", "I"]]),
        ("[N * B], where each token goes", [["N * B"]]),
        ("[optional], (e, g) as in i.e.", []),
    ],
)
def test_shapes_in_prose(text: str, dims: list[list[str]]) -> None:
    assert parse_shapes(text) == dims


def test_a_docstring_of_several_arguments() -> None:
    (function,) = ast.parse(
        'def f(q, k, v):\n    """\n    Args:\n        q, k (torch.Tensor):\n            of `[B, T]`.\n'
        '        v: values\n\n    Returns:\n        o: [M, N]\n    """'
    ).body
    assert isinstance(function, ast.FunctionDef)
    assert docstring_shapes(function) == {"q": [["B", "T"]], "k": [["B", "T"]]}


def test_types_that_a_docstring_states_are_those_of_the_arguments() -> None:
    text = '''
def gather(table, at, wide, count):
    """
    table: (N, C) rows to take.
    at: (K, 1) uint32 indices.
    wide: int, how far the next row lies.
    count (int): rows.
    """
'''
    (function,) = (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef))
    assert docstring_types(function) == {"at": "uint32", "wide": "int", "count": "int"}
