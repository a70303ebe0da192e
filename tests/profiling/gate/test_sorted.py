"""What inputs are is kept: ascending bounds that a kernel searches stay in order, divisors stay away from zero."""

from __future__ import annotations

import numpy as np
import pytest
from support.drawn_values import values_of

from accelopt_profiling.gate.probes.registry import VALUES
from accelopt_profiling.gate.probes.rewriting import Shuffled

BOUNDS = np.linspace(-3, 3, 20, dtype=np.float32)
FOR_ALL = [name for name, probe in VALUES.items() if not probe.fits_some and name != "original"]


@pytest.mark.parametrize("distribution", [name for name in FOR_ALL if name != "same rest"])
@pytest.mark.parametrize("bounds", [BOUNDS, np.stack([BOUNDS, BOUNDS * 2])], ids=["one row", "two rows"])
def test_ascending_rows_stay_so(distribution: str, bounds: np.ndarray) -> None:
    [rows], changed = values_of(distribution, [bounds])
    assert changed
    assert (np.diff(rows, axis=-1) >= 0).all()
    assert not np.array_equal(rows, bounds)


def test_rows_that_are_all_the_same_are_not_in_order() -> None:
    [row], _ = values_of("integers", [np.ones(200, np.float32)])
    assert (np.diff(row) < 0).any()


@pytest.mark.parametrize("distribution", ["rows", "integers"])
def test_divisors_get_no_zeros(distribution: str) -> None:
    scales = (2.0 ** np.random.default_rng(0).integers(-3, 2, size=(40, 20))).astype(np.float32)
    [divisors], _ = values_of(distribution, [scales])
    assert (divisors > 0).all()
    [of_any], _ = values_of(distribution, [np.abs(np.random.default_rng(0).normal(size=(40, 20)))])
    assert (of_any == 0).any()


def test_symmetric_matrices_stay_definite() -> None:
    factors = np.random.default_rng(0).normal(size=(4, 9, 9))
    definite = factors @ factors.swapaxes(1, 2) + np.eye(9)
    assert Shuffled(1).of([definite]) == ([definite], False)
    for distribution in ("rows", "integers"):
        assert values_of(distribution, [definite]) == ([definite], False)
    [scaled], changed = values_of("large", [definite])
    assert changed
    assert np.linalg.eigvalsh(scaled).min() > 0
    assert values_of("integers", [np.eye(9)])[1]  # a mask
