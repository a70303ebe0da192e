"""Collectives of one rank are defined; the others of several are stood in for, which a finding says."""

from __future__ import annotations

import numpy as np
import pytest
from support.nki_current_source import TRN2, run
from support.nki_rule_cases import loaded

from accelopt_profiling.nki.install import emulated

GROUP = "import nki.collectives as ncc\ngroup = ncc.ReplicaGroup([{ranks}])\n"
REDUCE = """
out = nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
ncc.all_reduce([a], [out], group, nl.add)
return out
"""
A = np.ones((32, 8), np.float32)


@pytest.mark.parametrize(("ranks", "told"), [([0], 0), ([0, 1, 2], 1)])
def test_other_ranks_are_told_of(ranks: list[int], told: int) -> None:
    outcome = run(GROUP.format(ranks=ranks) + REDUCE, A)
    np.testing.assert_array_equal(outcome.result, A * len(ranks))
    assert [f.code for f in outcome.findings] == ["stand-in"] * told


def test_a_rank_outside_of_the_groups_is_not_emulated() -> None:
    fault = run(GROUP.format(ranks=[1, 2]) + REDUCE, A).fault
    assert fault is not None
    assert "none of the groups [[1, 2]]: not emulated" in fault.message


def test_four_ranks_of_two_cores_each_gather_chunks() -> None:
    text = """
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(a, counts):
    out = nl.ndarray((1, 16), a.dtype, nl.shared_hbm)
    zeros = nl.zeros((1, 16), dtype=a.dtype)
    nisa.dma_copy(out, zeros)
    group = ncc.ReplicaGroup([[0, 1, 2, 3]])
    ncc.all_gather_v([a], [out], group, counts, recv_counts_known=True)
    return out
"""
    row = np.arange(8, dtype=np.float32).reshape(1, 8)
    counts = np.array([[3, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]], np.uint32)
    with emulated("full", limits=TRN2, sdk=False):
        result = loaded(text).kernel[2](row, counts)
    np.testing.assert_array_equal(result, [[2, 3, 4, 0] * 4])
