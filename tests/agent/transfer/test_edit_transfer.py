"""An accepted edit is carried over to another kernel whole, or in the parts that fit; each makes its own fast side."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelopt_agent.syntax.fingerprint import file_fingerprint
from accelopt_agent.transfer.edit_transfer import reproduces, transfer
from accelopt_agent.transfer.pair_edit import edit_id, read_edit
from accelopt_benchmarks.checkout import MEMORY_CORPUS
from accelopt_benchmarks.memory.corpus import CorpusPair, read_pairs

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


PAIRS = {pair.name: pair for pair in read_pairs(MEMORY_CORPUS)}


def carried(pair: str, other: str) -> str:
    """What the edit of a pair of the corpus makes of one of its other kernels."""
    of, onto = PAIRS[pair], next(o for o in PAIRS[pair].others if o.name == other)
    result = transfer(of.slow, of.fast, of.kernel, onto.text, onto.kernel)
    assert result is not None
    return result.text


@pytest.mark.parametrize("pair", PAIRS.values(), ids=lambda pair: pair.name)
def test_a_pair_makes_its_own_fast_side(pair: CorpusPair) -> None:
    assert reproduces(pair.slow, pair.fast, pair.kernel)
    assert not reproduces(pair.slow, "def other():\n    pass\n", pair.kernel)


def test_four_instructions_become_one_in_a_different_kernel() -> None:
    result = transfer(SLOW, FAST, "gate_kernel", OTHER, "glu_kernel")
    assert result is not None
    assert result.whole
    assert "gated = nisa.activation(op=nl.silu, data=left)" in result.text
    for gone in ("nl.exp", "reciprocal(", "tensor_scalar", "scratch"):
        assert gone not in result.text
    for fragment in (
        "# the gate",
        "# the value",
        "nl.store(result[k, rows, columns], nl.multiply(gated, right))",
    ):
        assert fragment in result.text


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
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
    assert file_fingerprint(result.text) == file_fingerprint(fast)
    assert ("\r\n" in result.text) == crlf
    assert "\n" not in result.text.replace("\r\n", "") or not crlf
    plain = [ast.unparse(ast.parse(t)) for t in (SLOW, FAST)]
    assert edit_id(read_edit(slow, fast)) == edit_id(read_edit(plain[0], plain[1]))


def test_three_passes_become_one_with_the_launch_and_what_only_the_other_kernel_has() -> None:
    text = carried("single_pass_layer_norm", "other_gated")
    for line in (
        "mu = tl.sum(v, axis=0) / width",
        "z = (v - mu) * inv * s * tl.sigmoid(g)",
        "block = triton.next_power_of_2(width)",
        "gated_norm[(m,)](x, out, gate, scale, x.stride(0), width, eps, TILE=block)",
    ):
        assert line in text
    assert text.count("for first in range") == 0


def test_constants_parameters_and_grid_change_together() -> None:
    text = carried("bigger_tile", "other_two")
    assert "TILE = 2048\nTILES = 4\n" in text  # 64 became 1024, so 128 becomes 2048
    assert (
        "leaky_product[(triton.cdiv(size, TILE * TILES),)](a, b, out, size, TILES=TILES, TILE=TILE, num_warps=8)"
        in text
    )
    assert "    for tile in range(TILES):\n        idx = first + tile * TILE + tl.arange(0, TILE)\n" in text


def test_a_line_like_a_changed_one_is_changed_too() -> None:
    text = carried("nki_today_wider_tiles", "other_product")
    assert "nisa.dma_copy(left, a[row * 128 : (row + 1) * 128, :])" in text
    assert "nisa.dma_copy(right, b[row * 128 : (row + 1) * 128, :])" in text


def test_only_the_parts_that_fit_are_merged() -> None:
    two = FAST.replace("nl.arange(512)", "nl.arange(512) * 1")
    slow = SLOW.replace("    p = nl", "    q = nl.arange(64)[:, None]\n    p = nl")
    fast = two.replace("    p = nl", "    q = nl.arange(32)[:, None]\n    p = nl")
    other = OTHER.replace("nl.arange(256)[None, :]", "nl.mgrid[0:128, 0:256]")
    result = transfer(slow, fast, "gate_kernel", other, "glu_kernel")
    assert result is not None
    assert "nl.silu" in result.text


def test_what_has_nothing_in_common_is_left_alone() -> None:
    other = HEAD + "@nki.jit\ndef copy(a):\n    out = nl.ndarray(a.shape, dtype=a.dtype)\n    return out\n"
    assert transfer(SLOW, FAST, "gate_kernel", other, "copy") is None
    assert transfer(SLOW, FAST, "gate_kernel", "def f(:", "f") is None


def test_no_dialect_is_given_the_imports_of_the_other() -> None:
    today = OTHER.replace("neuronxcc.nki", "nki")
    result = transfer(SLOW, FAST, "gate_kernel", today, "glu_kernel")
    assert result is None or "neuronxcc" not in result.text
