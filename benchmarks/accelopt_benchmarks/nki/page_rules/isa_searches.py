"""nki.isa: reductions, searches and selections."""

from __future__ import annotations

import numpy as np

from accelopt_benchmarks.nki.page_rules.rule import (
    BITS,
    EIGHTS,
    LEAST,
    OUT,
    SCALAR,
    TIES,
    WHOLE,
    PageRule,
    X,
    new,
)


def _reductions() -> list[PageRule]:
    """nki.api.shared, legal reductions; nki.isa.tensor_reduce, tensor_partition_reduce."""
    one, column, row = "nisa.tensor_reduce", new("o", "int32", "(32, 1)"), new("o", like="(1, 64)")
    ufuncs = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
    return [
        *(PageRule(one, name, f"{column}\n{one}(o, nl.{name}, x, axis=1)", f.reduce(WHOLE, axis=1)[:, None], (WHOLE,))
          for name, f in ufuncs.items()),
        PageRule(one, "multiply", f"{SCALAR}\n{one}(o, nl.multiply, x, axis=1)", X.prod(1, keepdims=True), (X,)),
        PageRule(one, "logical_xor", f"{SCALAR}\n{one}(o, nl.logical_xor, x, axis=1)",
             np.logical_xor.reduce(X, axis=1)[:, None].astype(np.float32), (X,)),
        PageRule(one, "negated", f"{SCALAR}\n{one}(o, nl.add, x, axis=1, negate=True)", -X.sum(1, keepdims=True), (X,)),
        PageRule(one, "the last dimensions only",
             f"{new('o', like='(32, 16)')}\n{one}(o, nl.add, x.reshape((32, 4, 16)), axis=1)", None, (X,)),
        PageRule(one, "not the partitions", f"{row}\n{one}(o, nl.add, x, axis=0)", None, (X,)),
        PageRule(one, "abs_max does not reduce", f"{SCALAR}\n{one}(o, nl.abs_max, x, axis=1)", None, (X,), "trn3"),
        PageRule(one, "power does not reduce", f"{SCALAR}\n{one}(o, nl.power, x, axis=1)", None, (X,)),
        PageRule(one, "bits need integers", f"{SCALAR}\n{one}(o, nl.bitwise_or, x, axis=1)", None, (X,)),
        PageRule("nisa.tensor_partition_reduce", "average", f"{row}\nnisa.tensor_partition_reduce(o, 'average', x)",
             X.mean(0, keepdims=True), (X,)),
        PageRule("nisa.tensor_partition_reduce", "bitwise_or",
             f"{new('o', 'int32', '(1, 16)')}\nnisa.tensor_partition_reduce(o, nl.bitwise_or, x)",
             np.bitwise_or.reduce(WHOLE, axis=0)[None], (WHOLE,)),
        PageRule("nisa.tensor_partition_reduce", "no product",
             f"{row}\nnisa.tensor_partition_reduce(o, nl.multiply, x)",
             None, (X,)),
        PageRule("nisa.tensor_scalar_cumulative", "no integers of 32 bits",
             f"{BITS}\nnisa.tensor_scalar_cumulative(o, x, nl.add, nl.add, 0.0)", None, (WHOLE,)),
        PageRule("nisa.bn_aggr", "two columns", f"{new('s', like='(32, 6)')}\n{new('o', like='(32, 3)')}\n"
             "nisa.bn_stats(s, x)\nnisa.bn_aggr(o, s)", None, (X,)),
    ]  # fmt: skip


def _searches() -> list[PageRule]:
    """nki.isa.nc_find_index8, nc_match_replace8, max8."""
    places, none = new("o", "uint32", "(32, 8)"), np.uint32(0xFFFFFFFF)
    absent = np.array([[3, 8, 8, 8, 8, 8, 8, 77]], np.float32).repeat(32, 0)
    ascending, descending = [[2, 4, 5, 6, 7, 8, 9, 10]], [[2, 10, 9, 8, 7, 6, 5, 4]]
    replaced = np.where(TIES == 3, -1, np.where(TIES == 8, -1, TIES))
    match = f"{OUT}\n{new('i', 'uint32', '(32, 8)')}\nnisa.nc_match_replace8(o, x, y, -1.0, dst_idx=i)"
    find = "nisa.nc_find_index8"
    return [
        PageRule(find, "equal values advance", f"{places}\n{find}(o, x, y)", np.array(ascending,
             np.uint32).repeat(32, 0),
             (TIES, EIGHTS)),
        PageRule(find, "an absent value is all ones", f"{places}\n{find}(o, x, y)",
             np.array([[2, 4, 5, 6, 7, 8, 9, none]], np.uint32).repeat(32, 0), (TIES, absent)),
        PageRule(find, "an absent value in 16 bits", f"{new('o', 'uint16', '(32, 8)')}\n{find}(o, x, y)",
             np.array([[2, 4, 5, 6, 7, 8, 9, 0xFFFF]], np.uint16).repeat(32, 0), (TIES, absent)),
        PageRule(find, "indices are unsigned", f"{new('o', like='(32, 8)')}\n{find}(o, x, y)", None, (TIES, EIGHTS)),
        PageRule("nisa.nc_match_replace8", "indices of equal values, backwards", f"{match}\no = i",
             np.array(descending, np.uint32).repeat(32, 0), (TIES, EIGHTS)),
        PageRule("nisa.nc_match_replace8", "the first occurrences are replaced", match, replaced, (TIES, EIGHTS)),
        PageRule("nisa.max8", "descending", f"{new('o', like='(32, 8)')}\nnisa.max8(o, x)", -np.sort(-X, 1)[:, :8],
             (X,)),
        PageRule("nisa.nc_n_gather", "indices are uint32",
             f"{OUT}\n{new('i', 'int32')}\nnisa.iota(i, [[1, 64]])\nnisa.nc_n_gather(o, x, i)", None, (X,)),
        PageRule("nisa.nonzero_with_count", "results are int32",
             f"{new('o', like='(32, 65)')}\nnisa.nonzero_with_count(o, x, 0)", None, (X,)),
    ]  # fmt: skip


def _selections() -> list[PageRule]:
    """nki.isa.tensor_copy_predicated, select_reduce, range_select."""
    truth = (X > 0).astype(np.uint8)
    bounds = f"{new('lo', like='(32, 1)')}\n{new('hi', like='(32, 1)')}\nnisa.memset(lo, 3.0)\nnisa.memset(hi, 9.0)"
    inside = np.where((np.arange(64) >= 3) & (np.arange(64) < 9), X, LEAST)
    narrow = f"{bounds}\n{new('d', 'bfloat16')}\n{SCALAR}"
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
        PageRule(copied, "one type", f"{new('o', 'bfloat16')}\nnisa.memset(o, 5.0)\n{copied}(o, x, y)", None, (X,
             truth)),
        PageRule(selected, "the other value", f"{OUT}\n{selected}(o, y, x, -2.0)", np.where(truth, X, -2), (X, truth)),
        PageRule(selected, "its maximum",
             f"{OUT}\n{new('r', like='(32, 1)')}\n{selected}(o, y, x, -2.0, reduce_res=r, "
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


RULES = (
    *_reductions(),
    *_searches(),
    *_selections(),
)
