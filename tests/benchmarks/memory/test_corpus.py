"""The pairs made by hand are sound, and their clones say the same in other words."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from accelopt_agent.transfer.edit_transfer import reproduces
from accelopt_benchmarks.checkout import MEMORY_CORPUS
from accelopt_benchmarks.memory.carrying import CarriedEdit, rows
from accelopt_benchmarks.memory.corpus import CorpusPair, read_pairs

HELD_OUT = MEMORY_CORPUS.with_name("memory_heldout")
PAIRS = [*read_pairs(MEMORY_CORPUS), *read_pairs(HELD_OUT)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.name)
def test_a_pair_reproduces_itself_and_has_clones_and_others(pair: CorpusPair) -> None:
    assert reproduces(pair.slow, pair.fast, pair.kernel)
    assert pair.others
    own, renamed, reshaped = pair.clones()
    assert own.text == pair.slow
    names = [{n.id for n in ast.walk(ast.parse(k.text)) if isinstance(n, ast.Name)} for k in (own, renamed)]
    assert names[0] != names[1]
    assert "spare = " in reshaped.text
    assert renamed.kernel != own.kernel


def test_a_folder_without_pairs_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no pair"):
        read_pairs(tmp_path)


def test_the_rows_count_what_the_gate_accepted() -> None:
    made = [CarriedEdit("p", "k", "own", "accepted"), CarriedEdit("p", "k", "own", "does not fit")]
    (row,) = rows(made)
    assert (row.value, row.met) == (50.0, False)
