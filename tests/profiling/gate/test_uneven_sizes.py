"""Sizes that are odd and unequal, rests of tiles, or least, as far as a reference takes them; launches at wide ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from support.drawn_values import values_of

from accelopt_profiling.gate.probes.numbers import following
from accelopt_profiling.gate.probes.probe import Drawing
from accelopt_profiling.gate.probes.registry import SIZES
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.targets import load_gpu
from accelopt_profiling.triton.compilation.compile import launch_problem


def shapes(
    probe: str,
    takes: Callable[[Mapping[str, int]], bool] = lambda sizes: True,
    choices: Mapping[str, int] | None = None,
    dialect: str = "triton",
    **axes: int,
) -> list[dict[str, int]]:
    def inputs(seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        now = {**axes, **(choices or {}), **(shape or {})}
        return [np.ones([now[name] for name in axes if name != "seed"], np.float32), seed]

    problem = Problem(inputs, lambda values: (cast(Any, None), values), axes=axes, choices=choices or {})
    drawing = SimpleNamespace(
        problem=problem,
        main=SimpleNamespace(smaller={}),
        first=inputs(0),
        size=100,
        takes=takes,
        dialect=dialect,
    )
    return SIZES[probe].shapes(cast(Drawing, drawing))


def test_all_sizes_change_together_where_the_reference_takes_that() -> None:
    assert shapes("uneven sizes", rows=64, columns=512, batch=2) == [
        {"rows": 3, "columns": 5, "batch": 7},
        {"rows": 67, "columns": 521, "batch": 3},
        {"columns": 48},
        {"rows": 1, "columns": 1, "batch": 1},
    ]


def test_in_nki_the_last_axes_change_by_themselves_as_well() -> None:
    assert shapes("uneven sizes", dialect="nki", batch=4, rows=128, columns=512)[4:] == [
        {"columns": 521},
        {"rows": 131},
    ]


def test_one_after_another_changes_where_it_does_not() -> None:
    def divides(sizes: Mapping[str, int]) -> bool:
        return sizes.get("channels", 32) % sizes.get("groups", 8) == 0

    odd, *_, least = shapes("uneven sizes", divides, channels=32, groups=8, size=9)
    assert odd == {"size": 7}
    assert least == {"channels": 1, "groups": 1, "size": 1}


def test_what_is_one_becomes_two_and_flags_turn() -> None:
    odd, primes, least = shapes("uneven sizes", choices={"shared": 1, "causal": True}, heads=4)
    assert odd == {"causal": False, "heads": 3}
    assert primes == {"heads": 5}
    assert least == {"shared": 1 + (5 << 16), "heads": 1}


def test_a_number_that_is_no_size_is_beyond_16_bits() -> None:
    assert shapes("uneven sizes", rows=6, seed=123)[-1] == {"rows": 1, "seed": 123 + (5 << 16)}


def test_wide_launches_have_one_long_axis() -> None:
    assert shapes("wide launches", rows=8, columns=512) == [
        {"rows": 65536, "columns": 16},
        {"rows": 8, "columns": 65536},
    ]


@pytest.mark.parametrize(
    ("grid", "warps", "message"),
    [
        ((65536, 65535, 1), 32, ""),
        ((1, 65536, 1), 4, "65,536 programs on axis 1"),
        ((1, 1, 65536), None, "65,536 programs on axis 2"),
        ((1, 1, 1), 64, "64 warps"),
    ],
)
def test_grids_and_warps_that_a_target_does_not_take(
    grid: tuple[int, int, int], warps: int | None, message: str
) -> None:
    launch = SimpleNamespace(grid=grid, options={"num_warps": warps})
    problem = launch_problem(cast(Any, launch), load_gpu("h100"))
    assert message in (problem.message if problem else "")
    assert bool(problem) == bool(message)


def test_a_square_matrix_loses_half_of_its_columns() -> None:
    square = np.arange(36.0).reshape(6, 6)
    (half, number), changed = values_of("unequal axes", [square, 3])
    assert changed
    assert number == 3
    assert np.array_equal(half, square[:, :3])
    assert half.flags.c_contiguous
    assert values_of("unequal axes", [square, square])[1] is False
    assert values_of("unequal axes", [square[:5]])[1] is False
    assert values_of("unequal axes", [square], usable=lambda inputs: False)[1] is False


def test_whole_numbers_have_other_values() -> None:
    assert [following(value) for value in (7, True, 1.5)] == [8, True, 1.5]
