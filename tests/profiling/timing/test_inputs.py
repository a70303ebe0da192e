"""Values that take turns in the memory of timed runs, and the runs whose outputs are kept."""

import random
from collections import Counter
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.comparison.saved_values import load_values
from accelopt_profiling.timing.inputs import Given, RotatingInputs, each_tensor, pairing, tensors_in
from accelopt_profiling.timing.kept_outputs import FOLDER, KEPT, KeptOutputs


@given(st.integers(1, 6), st.integers(0, 200))
def test_memory_takes_turns_and_meets_all_values_alike(sets, begin):
    rounds = [pairing(turn, sets) for turn in range(begin, begin + sets * sets)]
    assert [g.memory for g in rounds] == [(begin + n) % sets for n in range(sets * sets)]
    assert set(Counter((g.values, g.memory) for g in rounds).values()) == {1}
    if sets > 1:
        assert pairing(begin, sets).values != pairing(begin + sets, sets).values, (
            "an address never keeps its values"
        )


def test_values_are_laid_out_anew_for_every_run():
    sets = [[torch.full((3,), float(n))] for n in range(3)]
    inputs = RotatingInputs(sets)
    for _ in range(12):
        given_ = inputs()
        assert sets[given_.memory][0].tolist() == [float(given_.values)] * 3
        sets[given_.memory][0].zero_()  # a kernel that works in place


def test_sets_of_different_shapes_stay_where_they_are():
    sets = [[torch.ones(2)], [torch.ones(3)]]
    inputs = RotatingInputs(sets)
    assert not inputs.movable
    assert [inputs() for _ in range(4)] == [Given(0, 0), Given(1, 1), Given(0, 0), Given(1, 1)]


def test_parameters_views_and_expanded_tensors_are_survived():
    weight = torch.nn.Parameter(torch.ones(2))
    sets = [[weight, torch.ones(1).expand(4)], [torch.nn.Parameter(torch.zeros(2)), torch.ones(1).expand(4)]]
    inputs = RotatingInputs(sets)
    for _ in range(3):
        inputs()
    assert weight.tolist() == [0.0, 0.0]  # the third run: the second set's values in the first's memory


def test_tensors_are_found_wherever_they_lie():
    a, b = torch.ones(1), torch.ones(2)
    assert [t.numel() for t in tensors_in([a, {"b": (b, 3)}, None, "x"])] == [1, 2]


class Pair(NamedTuple):
    a: object
    b: object


def test_tensors_are_changed_wherever_they_lie_and_nothing_else_is():
    one, size = torch.ones(1), torch.Size([2, 3])
    values = [one, {"b": (one, 3)}, Pair(one, "x"), size, None]
    changed = each_tensor(values, lambda tensor: tensor + 1)
    assert [t.item() for t in tensors_in(changed)] == [2, 2, 2]
    assert isinstance(changed[2], Pair)
    assert changed[3] is size
    assert changed[1]["b"][1] == 3


def test_which_runs_are_kept_is_left_to_chance(tmp_path):
    times = Counter()
    for seed in range(300):
        outputs = KeptOutputs(random.Random(seed))
        for run in range(20):
            outputs.see(run, Given(run % 4, 0), torch.tensor([run]))
        times.update(run for run, _, _ in outputs.runs)
    assert set(times) == set(range(20))
    assert min(times.values()) > 300 * KEPT / 20 / 2
    assert outputs.save(tmp_path) == KEPT
    for run, given_, _ in outputs.runs:
        assert load_values(tmp_path / FOLDER / f"{run}-{given_.values}")[0].tolist() == [run]


def test_outputs_are_kept_as_they_were(tmp_path):
    outputs, buffer = KeptOutputs(random.Random(0)), torch.zeros(2)
    outputs.see(0, Given(1, 0), (buffer, 7))
    buffer.fill_(5)
    assert outputs.runs[0][2][0].tolist() == [0, 0]
    outputs.see(1, Given(0, 0), object())
    assert outputs.save(tmp_path) == 1, "an object cannot be compared"


def test_outputs_that_are_too_large_are_not_copied(monkeypatch):
    monkeypatch.setattr("accelopt_profiling.timing.kept_outputs.KEPT_BYTES", 16)
    outputs = KeptOutputs(random.Random(0))
    outputs.see(0, Given(0, 0), torch.zeros(9))
    assert outputs.runs == []


@pytest.mark.parametrize("sets", [[[]], [[], []]])
def test_calls_that_read_nothing(sets):
    assert RotatingInputs(sets)() == Given(0, 0)
