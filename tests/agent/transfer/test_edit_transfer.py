"""An accepted edit is carried over to another kernel by syntax, and left alone where it does not fit."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_agent.syntax.fingerprint import file_fingerprint
from accelopt_agent.transfer.edit_transfer import transfer

HEAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


"""

SLOW = (
    HEAD
    + '''\
@nki.jit
def gate_kernel(x):
    """x * sigmoid(x), one tile at a time."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    e = nl.ndarray((nl.par_dim(128), 512), dtype=np.float32, name="e", buffer=nl.sbuf)
    p = nl.arange(128)[:, None]
    f = nl.arange(512)[None, :]
    for i in nl.affine_range(8):
        tile = nl.load(x[i * 128 + p, f])
        e[p, f] = nisa.activation(op=nl.exp, data=tile, scale=-1.0, mask=None)
        d = nisa.tensor_scalar(data=e[p, f], op0=nl.add, operand0=1.0)
        r = nisa.reciprocal(data=d)
        y = nl.multiply(tile, r)
        nl.store(out[i * 128 + p, f], y)
    return out
'''
)
FAST = (
    HEAD
    + '''\
@nki.jit
def gate_kernel(x):
    """x * sigmoid(x), one tile at a time."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(512)[None, :]
    for i in nl.affine_range(8):
        tile = nl.load(x[i * 128 + p, f])
        y = nisa.activation(op=nl.silu, data=tile)
        nl.store(out[i * 128 + p, f], y)
    return out
'''
)
OTHER = (
    HEAD
    + """\
@nki.jit
def glu_kernel(a, b):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    scratch = nl.ndarray((4, nl.par_dim(128), 256), dtype=np.float32, name="s", buffer=nl.sbuf)
    rows = nl.arange(128)[:, None]
    columns = nl.arange(256)[None, :]
    for k in nl.affine_range(4):
        left = nl.load(a[k, rows, columns])  # the gate
        right = nl.load(b[k, rows, columns])  # the value
        scratch[k, rows, columns] = nisa.activation(op=nl.exp, data=left, scale=-1.0)
        one_more = nisa.tensor_scalar(data=scratch[k, rows, columns], operand0=1.0, op0=nl.add)
        # the reciprocal is the sigmoid
        sigmoid = nisa.reciprocal(data=one_more)
        gated = nl.multiply(left, sigmoid)
        nl.store(result[k, rows, columns], nl.multiply(gated, right))
    return result
"""
)


def test_four_instructions_become_one_in_a_different_kernel() -> None:
    text = transfer(SLOW, FAST, "gate_kernel", OTHER, "glu_kernel")
    assert text is not None
    assert "gated = nisa.activation(op=nl.silu, data=left)" in text
    for gone in ("nl.exp", "reciprocal(", "tensor_scalar", "scratch"):
        assert gone not in text
    for kept in (
        "# the gate",
        "# the value",
        "nl.store(result[k, rows, columns], nl.multiply(gated, right))",
    ):
        assert kept in text


@given(st.permutations(["a_", "b_", "c_", "left", "q", "value", "acc", "tmp", "j"]), st.booleans())
def test_a_renamed_slow_side_becomes_the_renamed_fast_side(new: list[str], crlf: bool) -> None:
    old = ["x", "out", "e", "p", "f", "tile", "d", "r", "y"]

    given_names = dict(zip(old, new, strict=True))

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(given_names.get(node.id, node.id), node.ctx)

        def visit_arg(self, node: ast.arg) -> ast.arg:
            return ast.arg(given_names.get(node.arg, node.arg))

    slow, fast = (ast.unparse(Rename().visit(ast.parse(t))) + "\n" for t in (SLOW, FAST))
    if crlf:
        slow = slow.replace("\n", "\r\n")
    result = transfer(SLOW, FAST, "gate_kernel", slow, "gate_kernel")
    assert result is not None
    assert file_fingerprint(result) == file_fingerprint(fast)
    assert ("\r\n" in result) == crlf
    assert "\n" not in result.replace("\r\n", "") or not crlf


def test_several_places_are_all_changed() -> None:
    twice = OTHER.replace(
        "    return result\n",
        "    for m in nl.affine_range(2):\n"
        "        t = nl.load(a[m, rows, columns])\n"
        "        u = nisa.activation(op=nl.exp, data=t, scale=-1.0)\n"
        "        v = nisa.tensor_scalar(data=u, op0=nl.add, operand0=1.0)\n"
        "        w = nisa.reciprocal(data=v)\n"
        "        z = nl.multiply(t, w)\n"
        "        nl.store(result[m, rows, columns], z)\n"
        "    return result\n",
    )
    text = transfer(SLOW, FAST, "gate_kernel", twice, "glu_kernel")
    assert text is not None
    assert text.count("nl.silu") == 2


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("scale=-1.0", "scale=1.0", "another constant"),
        ("nl.exp", "nl.tanh", "another function"),
        ("nl.multiply(left, sigmoid)", "nl.multiply(right, sigmoid)", "another operand"),
        ("operand0=1.0", "operand0=1.0, reverse0=True", "another argument"),
        ("nl.multiply(gated, right)", "nl.multiply(gated, sigmoid)", "a dropped value is used later"),
        (
            "        # the reciprocal is the sigmoid\n",
            "        one_more = nl.copy(one_more)\n",
            "changed in between",
        ),
    ],
)
def test_where_it_does_not_fit_nothing_is_changed(old: str, new: str, why: str) -> None:
    other = OTHER.replace(old, new)
    assert other != OTHER
    assert transfer(SLOW, FAST, "gate_kernel", other, "glu_kernel") is None, why


def test_a_name_that_means_nothing_there_is_not_brought_along() -> None:
    fast = FAST.replace("import numpy as np\n", "import numpy as np\nimport neuronxcc.nki.extra as extra\n")
    fast = fast.replace("nisa.activation(op=nl.silu, data=tile)", "extra.silu(tile)")
    assert transfer(SLOW, fast, "gate_kernel", OTHER, "glu_kernel") is None
    with_import = OTHER.replace(
        "import numpy as np\n", "import numpy as np\nimport neuronxcc.nki.extra as extra\n"
    )
    assert transfer(SLOW, fast, "gate_kernel", with_import, "glu_kernel") is not None


def test_an_edit_that_needs_a_new_buffer_is_not_carried_over() -> None:
    fast = FAST.replace(
        "    p = nl.arange(128)[:, None]\n",
        '    s = nl.ndarray((nl.par_dim(128), 512), dtype=np.float32, name="s", buffer=nl.sbuf)\n'
        "    p = nl.arange(128)[:, None]\n",
    )
    fast = fast.replace("y = nisa.activation(op=nl.silu", "s[p, f] = nisa.activation(op=nl.silu")
    fast = fast.replace("        nl.store(out", "        y = nl.copy(s[p, f])\n        nl.store(out")
    assert transfer(SLOW, fast, "gate_kernel", OTHER, "glu_kernel") is None


@given(st.text(max_size=200))
def test_text_that_is_no_kernel_changes_nothing(text: str) -> None:
    assert transfer(SLOW, FAST, "gate_kernel", text, "glu_kernel") is None
