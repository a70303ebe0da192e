"""What AWS's pages say of NKI's functions, each with statements, and the values or that they are forbidden.

The values are written from the pages of NKI 0.6 (SDK 2.32: nki.isa, nki.language, nki.api.shared, the release notes),
not from what the emulator computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PageRule:
    """A rule of ``function``'s page. ``statements`` leave their result in ``o``; ``x``, ``y`` and ``z`` are the
    ``inputs`` in SBUF, ``a``, ``b`` and ``c`` the same in HBM. ``expected`` is None where the page forbids the call."""

    function: str
    text: str
    statements: str
    expected: Array | None
    inputs: tuple[Array, ...]
    core: str = "trn2"


RNG = np.random.default_rng(38)
X = RNG.standard_normal((32, 64), dtype=np.float32)
Y = RNG.standard_normal((32, 64), dtype=np.float32)
COLUMN = RNG.uniform(0.5, 2, (32, 1)).astype(np.float32)
WHOLE = RNG.integers(-(2**31), 2**31, (32, 16), dtype=np.int32)
HALVES = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 300, -300, 3e9, -3e9]], np.float32).repeat(32, 0)
TIES = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8, 0]], np.float32).repeat(32, 0)
EIGHTS = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], np.float32).repeat(32, 0)
LEAST = np.float32(np.finfo(np.float32).min)


def _new(name: str, dtype: str = "float32", like: str = "x.shape", buffer: str = "sbuf") -> str:
    return f"{name} = nl.ndarray({like}, dtype=nl.{dtype}, buffer=nl.{buffer})"


def _rounded(x: Array, kind: Any) -> Array:
    limits = np.iinfo(kind)
    return np.clip(np.rint(x.astype(np.float64)), limits.min, limits.max).astype(kind)


OUT, BITS, SCALAR = _new("o"), _new("o", "int32"), _new("o", like="(32, 1)")
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def _conversions() -> list[PageRule]:
    """Release notes of 0.6: casts to integers go to the nearest, ties to even, and saturate."""
    text, rules = "to integers: nearest, ties to even, saturating", []
    for kind in _INTEGERS:
        expected = _rounded(HALVES, np.dtype(kind).type)
        for function, call in (
            ("nisa.tensor_copy", "nisa.tensor_copy(o, x)"),
            ("nisa.activation", "nisa.activation(o, nl.copy, x)"),
            ("nisa.tensor_scalar", "nisa.tensor_scalar(o, x, nl.add, 0.0)"),
            ("nisa.dma_copy", "nisa.dma_copy(o, x)"),
        ):
            rules.append(
                PageRule(function, f"{text} ({kind})", f"{_new('o', kind)}\n{call}", expected, (HALVES,))
            )
    return rules


def _scalar_operations() -> list[PageRule]:
    """nki.api.shared, Supported Math Operators; nki.isa.tensor_scalar: unary operators take None or 0."""
    positive = np.abs(X) + np.float32(0.1)
    values = {
        "abs": np.abs(X), "square": X * X, "relu": np.maximum(X, 0), "rsqrt": 1 / np.sqrt(positive),
        "reciprocal": 1 / X,
    }  # fmt: skip
    rules = [
        PageRule("nisa.tensor_scalar", f"{name} takes {none}", f"{OUT}\nnisa.tensor_scalar(o, x, nl.{name}, {none})",
             value,
             (positive if name == "rsqrt" else X,), "trn3")
        for name, value in values.items() for none in ("None", "0")
    ]  # fmt: skip
    one = "nisa.tensor_scalar"
    return [
        *rules,
        PageRule(one, "invert on bits", f"{BITS}\n{one}(o, x, nl.invert, None)", ~WHOLE, (WHOLE,)),
        PageRule(one, "right shift is logical", f"{BITS}\n{one}(o, x, nl.right_shift, 3)",
             (WHOLE.view(np.uint32) >> 3).view(np.int32), (WHOLE,)),
        PageRule(one, "reversed operands", f"{OUT}\n{one}(o, x, nl.subtract, 1.0, True, nl.multiply, y)",
             (1 - X) * COLUMN,
             (X, COLUMN)),
        PageRule(one, "a unary operator has no operand", f"{OUT}\n{one}(o, x, nl.abs, 2.0)", None, (X,)),
        PageRule(one, "square needs trn3", f"{OUT}\n{one}(o, x, nl.square, None)", None, (X,)),
        PageRule(one, "abs_max needs trn3", f"{OUT}\n{one}(o, x, nl.abs_max, 1.0)", None, (X,)),
        PageRule(one, "operations on bits need integers", f"{OUT}\n{one}(o, x, nl.bitwise_and, 1)", None, (X,)),
        PageRule(one, "operations on bits and arithmetic do not mix",
             f"{BITS}\n{one}(o, x, nl.bitwise_and, 7, op1=nl.add, operand1=1.0)", None, (WHOLE,)),
        PageRule(one, "no division", f"{OUT}\n{one}(o, x, nl.divide, 2.0)", None, (X,)),
        PageRule(one, "no remainder", f"{OUT}\n{one}(o, x, nl.mod, 2.0)", None, (X,)),
        PageRule(one, "operations on bits run on VectorE",
             f"{BITS}\n{one}(o, x, nl.bitwise_and, 7, engine=nisa.engine.gpsimd)", None, (WHOLE,)),
        PageRule(one, "GpSimdE has rsqrt alone", f"{OUT}\n{one}(o, x, nl.add, 1.0, engine=nisa.engine.gpsimd)", None,
             (X,)),
        PageRule(one, "ScalarE of trn2 has no subtraction",
             f"{OUT}\n{one}(o, x, nl.subtract, 1.0, engine=nisa.engine.scalar)", None, (X,)),
        PageRule("nisa.scalar_tensor_tensor", "no operations on bits",
             f"{BITS}\nnisa.scalar_tensor_tensor(o, x, nl.bitwise_and, 7, nl.add, x)", None, (WHOLE,)),
        PageRule("nisa.tensor_scalar_reduce", "no operations on bits",
             f"{BITS}\n{_new('r', like='(32, 1)')}\nnisa.tensor_scalar_reduce(o, x, nl.bitwise_and, 7, nl.add, r)",
             None,
             (WHOLE,)),
        PageRule("nisa.tensor_scalar_reduce", "a minimum is reduced",
             f"{OUT}\n{_new('r', like='(32, 1)')}\n"
             "nisa.tensor_scalar_reduce(o, x, nl.multiply, 2.0, nl.minimum, r)\no = r",
             (2 * X).min(1, keepdims=True), (X,)),
    ]  # fmt: skip


def _pairs() -> list[PageRule]:
    """nki.isa.tensor_tensor: int32 is exact where nothing lies in PSUM and no engine is named."""
    one = "nisa.tensor_tensor"
    added = (WHOLE.view(np.uint32) + WHOLE[::-1].copy().view(np.uint32)).view(np.int32)
    return [
        PageRule(one, "int32 is exact", f"{BITS}\n{one}(o, x, y, nl.add)", added, (WHOLE, WHOLE[::-1].copy())),
        PageRule(one, "VectorE goes through float32", f"{BITS}\n{one}(o, x, x, nl.maximum, engine=nisa.engine.vector)",
             _rounded(WHOLE.astype(np.float32), np.int32), (WHOLE,)),
        PageRule(one, "operations on bits need integers", f"{OUT}\n{one}(o, x, x, nl.bitwise_or)", None, (X,)),
        PageRule(one, "abs_max keeps the sign", f"{OUT}\n{one}(o, x, y, nl.abs_max)", np.where(abs(X) > abs(Y), X, Y),
             (X, Y),
             "trn3"),
        PageRule(one, "no unary operators", f"{OUT}\n{one}(o, x, x, nl.square)", None, (X,), "trn3"),
        PageRule(one, "at most one operand in PSUM",
             f"{OUT}\n{_new('p', buffer='psum')}\nnisa.tensor_copy(p, x)\n{one}(o, p, p, nl.add)", None, (X,)),
        PageRule("nisa.tensor_copy", "GpSimdE does not reach PSUM",
             f"{_new('o', buffer='psum')}\nnisa.tensor_copy(o, x, engine=nisa.engine.gpsimd)", None, (X,)),
    ]  # fmt: skip


def _reductions() -> list[PageRule]:
    """nki.api.shared, legal reductions; nki.isa.tensor_reduce, tensor_partition_reduce."""
    one, column, row = "nisa.tensor_reduce", _new("o", "int32", "(32, 1)"), _new("o", like="(1, 64)")
    ufuncs = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
    return [
        *(PageRule(one, name, f"{column}\n{one}(o, nl.{name}, x, axis=1)", f.reduce(WHOLE, axis=1)[:, None], (WHOLE,))
          for name, f in ufuncs.items()),
        PageRule(one, "multiply", f"{SCALAR}\n{one}(o, nl.multiply, x, axis=1)", X.prod(1, keepdims=True), (X,)),
        PageRule(one, "logical_xor", f"{SCALAR}\n{one}(o, nl.logical_xor, x, axis=1)",
             np.logical_xor.reduce(X, axis=1)[:, None].astype(np.float32), (X,)),
        PageRule(one, "negated", f"{SCALAR}\n{one}(o, nl.add, x, axis=1, negate=True)", -X.sum(1, keepdims=True), (X,)),
        PageRule(one, "the last dimensions only",
             f"{_new('o', like='(32, 16)')}\n{one}(o, nl.add, x.reshape((32, 4, 16)), axis=1)", None, (X,)),
        PageRule(one, "not the partitions", f"{row}\n{one}(o, nl.add, x, axis=0)", None, (X,)),
        PageRule(one, "abs_max does not reduce", f"{SCALAR}\n{one}(o, nl.abs_max, x, axis=1)", None, (X,), "trn3"),
        PageRule(one, "power does not reduce", f"{SCALAR}\n{one}(o, nl.power, x, axis=1)", None, (X,)),
        PageRule(one, "bits need integers", f"{SCALAR}\n{one}(o, nl.bitwise_or, x, axis=1)", None, (X,)),
        PageRule("nisa.tensor_partition_reduce", "average", f"{row}\nnisa.tensor_partition_reduce(o, 'average', x)",
             X.mean(0, keepdims=True), (X,)),
        PageRule("nisa.tensor_partition_reduce", "bitwise_or",
             f"{_new('o', 'int32', '(1, 16)')}\nnisa.tensor_partition_reduce(o, nl.bitwise_or, x)",
             np.bitwise_or.reduce(WHOLE, axis=0)[None], (WHOLE,)),
        PageRule("nisa.tensor_partition_reduce", "no product",
             f"{row}\nnisa.tensor_partition_reduce(o, nl.multiply, x)",
             None, (X,)),
        PageRule("nisa.tensor_scalar_cumulative", "no integers of 32 bits",
             f"{BITS}\nnisa.tensor_scalar_cumulative(o, x, nl.add, nl.add, 0.0)", None, (WHOLE,)),
        PageRule("nisa.bn_aggr", "two columns", f"{_new('s', like='(32, 6)')}\n{_new('o', like='(32, 3)')}\n"
             "nisa.bn_stats(s, x)\nnisa.bn_aggr(o, s)", None, (X,)),
    ]  # fmt: skip


def _searches() -> list[PageRule]:
    """nki.isa.nc_find_index8, nc_match_replace8, max8."""
    places, none = _new("o", "uint32", "(32, 8)"), np.uint32(0xFFFFFFFF)
    absent = np.array([[3, 8, 8, 8, 8, 8, 8, 77]], np.float32).repeat(32, 0)
    ascending, descending = [[2, 4, 5, 6, 7, 8, 9, 10]], [[2, 10, 9, 8, 7, 6, 5, 4]]
    replaced = np.where(TIES == 3, -1, np.where(TIES == 8, -1, TIES))
    match = f"{OUT}\n{_new('i', 'uint32', '(32, 8)')}\nnisa.nc_match_replace8(o, x, y, -1.0, dst_idx=i)"
    find = "nisa.nc_find_index8"
    return [
        PageRule(find, "equal values advance", f"{places}\n{find}(o, x, y)", np.array(ascending,
             np.uint32).repeat(32, 0),
             (TIES, EIGHTS)),
        PageRule(find, "an absent value is all ones", f"{places}\n{find}(o, x, y)",
             np.array([[2, 4, 5, 6, 7, 8, 9, none]], np.uint32).repeat(32, 0), (TIES, absent)),
        PageRule(find, "an absent value in 16 bits", f"{_new('o', 'uint16', '(32, 8)')}\n{find}(o, x, y)",
             np.array([[2, 4, 5, 6, 7, 8, 9, 0xFFFF]], np.uint16).repeat(32, 0), (TIES, absent)),
        PageRule(find, "indices are unsigned", f"{_new('o', like='(32, 8)')}\n{find}(o, x, y)", None, (TIES, EIGHTS)),
        PageRule("nisa.nc_match_replace8", "indices of equal values, backwards", f"{match}\no = i",
             np.array(descending, np.uint32).repeat(32, 0), (TIES, EIGHTS)),
        PageRule("nisa.nc_match_replace8", "the first occurrences are replaced", match, replaced, (TIES, EIGHTS)),
        PageRule("nisa.max8", "descending", f"{_new('o', like='(32, 8)')}\nnisa.max8(o, x)", -np.sort(-X, 1)[:, :8],
             (X,)),
        PageRule("nisa.nc_n_gather", "indices are uint32",
             f"{OUT}\n{_new('i', 'int32')}\nnisa.iota(i, [[1, 64]])\nnisa.nc_n_gather(o, x, i)", None, (X,)),
        PageRule("nisa.nonzero_with_count", "results are int32",
             f"{_new('o', like='(32, 65)')}\nnisa.nonzero_with_count(o, x, 0)", None, (X,)),
    ]  # fmt: skip


def _selections() -> list[PageRule]:
    """nki.isa.tensor_copy_predicated, select_reduce, range_select."""
    truth = (X > 0).astype(np.uint8)
    bounds = f"{_new('lo', like='(32, 1)')}\n{_new('hi', like='(32, 1)')}\nnisa.memset(lo, 3.0)\nnisa.memset(hi, 9.0)"
    inside = np.where((np.arange(64) >= 3) & (np.arange(64) < 9), X, LEAST)
    narrow = f"{bounds}\n{_new('d', 'bfloat16')}\n{SCALAR}"
    nothing = narrow.replace("memset(hi, 9.0)", "memset(hi, 3.0)")
    ranged = "nisa.range_select(d, x, nl.greater_equal, nl.less, lo, hi, reduce_res=o)"
    copied, selected = "nisa.tensor_copy_predicated", "nisa.select_reduce"
    return [
        PageRule(copied, "the rest is kept", f"{OUT}\nnisa.memset(o, 5.0)\n{copied}(o, x, y)", np.where(truth, X, 5),
             (X,
             truth)),
        PageRule(copied, "reversed", f"{OUT}\nnisa.memset(o, 5.0)\n{copied}(o, x, y, reverse_pred=True)",
             np.where(truth, 5, X), (X, truth)),
        PageRule(copied, "predicates are unsigned", f"{OUT}\nnisa.memset(o, 5.0)\n{copied}(o, x, x)", None, (X,)),
        PageRule(copied, "one type", f"{_new('o', 'bfloat16')}\nnisa.memset(o, 5.0)\n{copied}(o, x, y)", None, (X,
             truth)),
        PageRule(selected, "the other value", f"{OUT}\n{selected}(o, y, x, -2.0)", np.where(truth, X, -2), (X, truth)),
        PageRule(selected, "its maximum",
             f"{OUT}\n{_new('r', like='(32, 1)')}\n{selected}(o, y, x, -2.0, reduce_res=r, "
             "reduce_cmd=nisa.reduce_cmd.reset_reduce)\no = r", np.where(truth, X, -2).max(1, keepdims=True), (X,
             truth)),
        PageRule(selected, "predicates are integers", f"{OUT}\n{selected}(o, x, x, -2.0)", None, (X,)),
        PageRule("nisa.range_select", "positions between the bounds",
             f"{bounds}\n{OUT}\nnisa.range_select(o, x, nl.greater_equal, nl.less, lo, hi)", inside, (X,)),
        PageRule("nisa.range_select", "what is reduced is not rounded", f"{narrow}\n{ranged}", inside.max(1,
             keepdims=True),
             (X,)),
        PageRule("nisa.range_select", "nothing selected: the least float32", f"{nothing}\n{ranged}", np.full((32, 1),
             LEAST),
             (X,)),
        PageRule("nisa.range_select", "compares with five operations",
             f"{bounds}\n{OUT}\nnisa.range_select(o, x, nl.not_equal, nl.less, lo, hi)", None, (X,)),
        PageRule("nisa.range_select", "needs trn2",
             f"{bounds}\n{OUT}\nnisa.range_select(o, x, nl.greater_equal, nl.less, lo, hi)", None, (X,), "trn1"),
    ]  # fmt: skip


def _accumulations() -> list[PageRule]:
    """nki.isa.activation: the registers of ScalarE."""
    head = f"{_new('d')}\n{_new('n', 'bfloat16')}\n{SCALAR}"
    call = "nisa.activation({}, nl.exp, x, reduce_op=nl.add, reduce_res={}, reduce_cmd=nisa.reduce_cmd.{})"
    total = np.exp(X.astype(np.float64)).sum(1, keepdims=True)
    first = call.format("d", "None", "reset_reduce")
    return [
        PageRule("nisa.activation", "registers go on", f"{head}\n{first}\n{call.format('d', 'o', 'reduce')}", 2 * total,
             (X,)),
        PageRule("nisa.activation", "idle reads what the registers hold",
             f"{head}\n{first}\n{call.format('d', 'o', 'idle')}", total, (X,)),
        PageRule("nisa.activation", "what is reduced is not rounded",
             f"{head}\n{call.format('n', 'o', 'reset_reduce')}",
             total,
             (X,)),
        PageRule("nisa.activation", "its registers add",
             f"{head}\n{call.format('d', 'o', 'reset_reduce').replace('nl.add', 'nl.maximum')}", None, (X,)),
        PageRule("nisa.activation_reduce", "its registers add",
             f"{head}\nnisa.activation_reduce(d, nl.exp, x, nl.maximum, o)", None, (X,)),
        PageRule("nisa.activation", "a bias that is a number needs trn2",
             f"{OUT}\nnisa.activation(o, nl.exp, x, bias=1.0)", None,
             (X,), "trn1"),
        PageRule("nisa.exponential", "has a name, needs trn3", f"{OUT}\nnisa.exponential(o, x, name='e')", np.exp(X),
             (X,),
             "trn3"),
        PageRule("nisa.exponential", "not on trn2", f"{OUT}\nnisa.exponential(o, x)", None, (X,)),
    ]  # fmt: skip


def _products() -> list[PageRule]:
    """nki.isa.nc_matmul, nc_transpose, dma_transpose."""
    one, out = "nisa.nc_matmul", "nisa.tensor_copy(o, p)"
    overlap = np.zeros((64, 96), np.float32)
    overlap[:, :64] += X.T @ Y
    overlap[:, 32:] += X.T @ Y
    wide = RNG.standard_normal((32, 4096), dtype=np.float32)
    psum = _new("p", like="(64, 64)", buffer="psum")
    square = _new("o", like="(64, 64)")
    product = f"{psum}\n{square}\n{one}(p, x, y)"
    long = f"{_new('p', like='(64, 4096)', buffer='psum')}\n{_new('o', like='(64, 4096)')}\n{one}(p, x, y)\n{out}"
    return [
        PageRule(one, "the first overwrites", f"{product}\n{out}", X.T @ Y, (X, Y)),
        PageRule(one, "later ones add", f"{product}\n{one}(p, x, y)\n{out}", 2 * X.T @ Y, (X, Y)),
        PageRule(one, "accumulate=False overwrites", f"{product}\n{one}(p, x, y, accumulate=False)\n{out}", X.T @ Y, (X,
             Y)),
        PageRule(one, "overlapping places add",
             f"{_new('p', like='(64, 96)', buffer='psum')}\n{_new('o', like='(64, 96)')}\n"
             f"{one}(p[:, 0:64], x, y)\n{one}(p[:, 32:96], x, y)\n{out}", overlap, (X, Y)),
        PageRule(one, "4,096 columns on trn3", long, X.T @ wide, (X, wide), "trn3"),
        PageRule(one, "512 columns on trn2", long, None, (X, wide)),
        PageRule(one, "no integers", f"{psum}\n{square}\n{one}(p, x, x)\n{out}", None, (WHOLE.repeat(4, 1),)),
        PageRule(one, "writes float32 on trn2",
             f"{_new('p', 'bfloat16', '(64, 64)', 'psum')}\n{square}\n{one}(p, x, y)\n{out}", None, (X, Y)),
        PageRule(one, "writes to PSUM", f"{square}\n{one}(o, x, y)", None, (X, Y)),
        PageRule(one, "float32 goes with float32",
             f"{psum}\n{square}\n{_new('n', 'bfloat16')}\nnisa.tensor_copy(n, y)\n"
             f"{one}(p, x, n)\n{out}", None, (X, Y)),
        PageRule(one, "reads SBUF",
             f"{psum}\n{square}\n{_new('q', buffer='psum')}\nnisa.tensor_copy(q, x)\n{one}(p, q, y)",
             None, (X, Y)),
        PageRule(one, "a part of the array",
             f"{product.replace('y)', 'y, tile_position=(32, 0), tile_size=(32, 64))')}\n{out}", X.T @ Y, (X, Y)),
        PageRule(one, "parts start at multiples of their size",
             f"{product.replace('y)', 'y, tile_position=(16, 0), tile_size=(32, 64))')}\n{out}", None, (X, Y)),
        PageRule(one, "the stationary operand fits its part",
             f"{product.replace('y)', 'y, tile_position=(0, 0), tile_size=(32, 32))')}\n{out}", None, (X, Y)),
        PageRule(one, "quarters need trn2",
             f"{product.replace('y)', 'y, tile_position=(32, 0), tile_size=(32, 64))')}\n{out}", None, (X, Y), "trn1"),
        PageRule("nisa.nc_transpose", "VectorE takes 32 x 32", f"{_new('o', like='(64, 32)')}\n"
             "nisa.nc_transpose(o, x, engine=nisa.engine.vector)", None, (X,)),
        PageRule("nisa.dma_transpose", "swaps", f"{_new('o', like='(64, 32)')}\nnisa.dma_transpose(o, x)", X.T, (X,)),
        PageRule("nisa.dma_transpose", "one type", f"{_new('o', 'bfloat16', '(64, 32)')}\nnisa.dma_transpose(o, x)",
             None,
             (X,)),
        PageRule("nisa.dma_transpose", "indices column by column", _GATHERED, _gathered(), (_ROWS, _PLACES)),
    ]  # fmt: skip


_ROWS = RNG.standard_normal((512, 128), dtype=np.float32).astype(np.float32)
_PLACES = RNG.integers(0, 512, (128, 2)).astype(np.uint32)
_GATHERED = """\
o = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_transpose(o, a.ap(pattern=[[128, 256], [1, 128]], vector_offset=y, indirect_dim=0), axes=(1, 0))"""


def _gathered() -> Array:
    """The page's words: ``flat_indices = indices.T.flatten()``, 256 rows, transposed."""
    rows: Array = _ROWS[_PLACES.T.flatten()].T
    return rows


def _tensors() -> list[PageRule]:
    """nki.language.NkiTensor: indices; what nki.isa gives back; functions of nki.language."""
    row, last = _new("o", like="(1, 64)"), _new("o", like="(32, 1)")
    turned = f"{_new('o', like='(64, 32)')}\nnisa.tensor_copy(o, nl.transpose(x))"
    return [
        PageRule("nl.NkiTensor", "an index keeps the partitions", f"{row}\nnisa.tensor_copy(o, x[3])", X[3:4], (X,)),
        PageRule("nl.NkiTensor", "at least two dimensions", f"{last}\nnisa.tensor_copy(o, x[..., 5])", X[:, 5:6], (X,)),
        PageRule("nl.NkiTensor", "negative indices", f"{last}\nnisa.tensor_copy(o, x[0:32, -1])", X[:, -1:], (X,)),
        PageRule("nl.NkiTensor", "negative ends of slices",
             f"{_new('o', like='(32, 32)')}\nnisa.tensor_copy(o, x[:, -32:])",
             X[:, -32:], (X,)),
        PageRule("nl.NkiTensor", "beyond the end", f"{row}\nnisa.tensor_copy(o, x[32])", None, (X,)),
        PageRule("nisa.NkiInstruction", "depends_on",
             f"{OUT}\nfirst = nisa.memset(o, 0.0)\nnisa.tensor_copy(o, x).depends_on(first)", X, (X,)),
        PageRule("nisa.NkiValidationError", "is an exception",
             f"{OUT}\ntry:\n    nisa.tensor_copy(o, x)\nexcept nisa.NkiValidationError:\n    pass", X, (X,)),
        PageRule("nl.transpose", "lies in PSUM", turned, X.T, (X,)),
        PageRule("nl.transpose", "has a type", turned.replace("transpose(x)", "transpose(x, dtype=nl.float32)"), X.T,
             (X,)),
        PageRule("nl.var", "along free dimensions", "o = nl.var(x, axis=1)", X.var(1, keepdims=True), (X,)),
        PageRule("nl.mean", "along free dimensions", "o = nl.mean(x, axis=1)", X.mean(1, keepdims=True), (X,)),
        PageRule("nl.rms_norm", "with weights", "o = nl.rms_norm(x, y, axis=1, n=64)",
             X / np.sqrt((X * X).mean(1, keepdims=True) + 1e-6) * Y, (X, Y)),
        PageRule("nl.softmax", "along free dimensions", "o = nl.softmax(x, axis=1)",
             np.exp(X) / np.exp(X).sum(1, keepdims=True), (X,)),
        PageRule("nl.abs_max", "the larger one with its sign", "o = nl.abs_max(x, y)", np.where(abs(X) > abs(Y), X, Y),
             (X, Y),
             "trn3"),
        PageRule("nl.divide", "is no instruction", "o = nl.divide(x, y)", None, (X, Y)),
        PageRule("nl.power", "takes no number", "o = nl.power(x, 2.0)", None, (X,)),
        PageRule("nl.matmul", "with transpose_x",
             f"{_new('o', like='(64, 64)')}\nnisa.tensor_copy(o, nl.matmul(x, y, transpose_x=True))", X.T @ Y, (X, Y)),
        PageRule("nl.load_transpose2d", "swaps", "o = nl.load_transpose2d(a)", X.T, (X,)),
        PageRule("nl.gather_flattened", "by free position",
             f"{_new('i', 'uint32')}\nnisa.iota(i, [[-1, 64]], 63)\no = nl.gather_flattened(x, i)", X[:, ::-1], (X,)),
        PageRule("nisa.memset", "whole numbers into integers", f"{BITS}\nnisa.memset(o, 2.5)", None, (WHOLE,)),
        PageRule("nisa.iota", "four dimensions at most",
             f"{_new('o', 'int32', '(32, 32)')}\nnisa.iota(o, [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2]])", None, (X,)),
        PageRule("nisa.iota", "written to SBUF", f"{_new('o', 'int32', buffer='psum')}\nnisa.iota(o, [[1, 64]])", None,
             (X,)),
        PageRule("nisa.dma_copy", "does not reach PSUM", f"{_new('o', buffer='psum')}\nnisa.dma_copy(o, x)", None,
             (X,)),
        PageRule("nisa.dma_copy", "hardware descriptors need trn2",
             f"{OUT}\nnisa.dma_copy(o, x, dge_mode=nisa.dge_mode.hwdge)", None, (X,), "trn1"),
        PageRule("nisa.dma_compute", "adds in float32", f"{OUT}\nnisa.dma_compute(o, [x, y], reduce_op=nl.add)", X + Y,
             (X, Y)),
        PageRule("nisa.dma_compute", "adds only", f"{OUT}\nnisa.dma_compute(o, [x, y], reduce_op=nl.multiply)", None,
             (X,
             Y)),
    ]  # fmt: skip


RULES = (
    *_conversions(), *_scalar_operations(), *_pairs(), *_reductions(), *_searches(), *_selections(), *_accumulations(),
    *_products(), *_tensors(),
)  # fmt: skip
