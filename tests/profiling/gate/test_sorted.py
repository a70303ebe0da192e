"""What inputs are is kept: ascending bounds that a kernel searches stay in order, divisors stay away from zero."""

from __future__ import annotations

import numpy as np
import pytest

from accelopt_profiling.gate.inputs.distributions import change
from accelopt_profiling.gate.inputs.lopsided import skewed
from accelopt_profiling.gate.request import (
    ALTERED,
    DISTRIBUTIONS,
    HALF_RANGE,
    HELD_BY_ORIGINAL,
    LONG_SUMS,
    LOPSIDED,
)

BOUNDS = np.linspace(-3, 3, 20, dtype=np.float32)
PLAIN = [
    d for d in DISTRIBUTIONS[1:] if d not in (*ALTERED, *LONG_SUMS, *LOPSIDED, HALF_RANGE, *HELD_BY_ORIGINAL)
]


@pytest.mark.parametrize("distribution", [*PLAIN, "skewed"])
@pytest.mark.parametrize("bounds", [BOUNDS, np.stack([BOUNDS, BOUNDS * 2])], ids=["one row", "two rows"])
def test_ascending_rows_stay_so(distribution: str, bounds: np.ndarray) -> None:
    [found], changed = skewed([bounds], 1) if distribution == "skewed" else change(distribution, [bounds], 1)
    assert changed
    assert (np.diff(found, axis=-1) >= 0).all()
    assert not np.array_equal(found, bounds)


def test_rows_that_are_all_the_same_are_not_in_order() -> None:
    [found], _ = change("integers", [np.ones(200, np.float32)], 1)
    assert (np.diff(found) < 0).any()


@pytest.mark.parametrize("distribution", ["rows", "integers"])
def test_divisors_get_no_zeros(distribution: str) -> None:
    scales = (2.0 ** np.random.default_rng(0).integers(-3, 2, size=(40, 20))).astype(np.float32)
    [found], _ = change(distribution, [scales], 1)
    assert (found > 0).all()
    [of_any], _ = change(distribution, [np.abs(np.random.default_rng(0).normal(size=(40, 20)))], 1)
    assert (of_any == 0).any()


def test_symmetric_matrices_stay_definite() -> None:
    factors = np.random.default_rng(0).normal(size=(4, 9, 9))
    definite = factors @ factors.swapaxes(1, 2) + np.eye(9)
    for distribution in ("rows", "integers", "shuffled"):
        assert change(distribution, [definite], 1) == ([definite], False)
    [scaled], changed = change("large", [definite], 1)
    assert changed
    assert np.linalg.eigvalsh(scaled).min() > 0
    assert change("integers", [np.eye(9)], 1)[1]  # a mask
