"""That a kernel computes the same after each NKI rule, and that the counters move as the catalogue says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.nki_rule_cases import REWRITTEN, Case, inputs, launched, run

from accelopt_agent.rules import catalogue
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.nki.data.instruction import TENSOR, VECTOR
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.report import quantities
from accelopt_profiling.nki.time_model.estimate import estimate, waits
from accelopt_profiling.nki.time_model.hardware import AS_WRITTEN, hardware

#: What a rule that gives up bits may be off by, as a share of the largest value.
BITS = {"nki-bf16-parts": 2.0**-16}


@pytest.mark.parametrize("case", REWRITTEN, ids=str)
def test_the_rewritten_kernel_computes_the_same(case: Case) -> None:
    text, arguments = case.whole(case.before), inputs()
    expected = run(text, *arguments)
    for candidate in catalogue.apply(case.rule, text, find_kernels(text).kernels[0]):
        atol = BITS.get(case.rule, 0.0) * np.nanmax(np.abs(expected)) + 2e-6
        np.testing.assert_allclose(run(candidate.text, *arguments), expected, rtol=2e-6, atol=atol)


def counters(text: str, *arguments: Any) -> dict[str, float]:
    with emulated(mode="full") as emulation:
        launched(text, *[np.array(a) for a in arguments])
    trace = emulation.machines[-1].trace
    # A rule changes what the kernel asks for; what the compiler would make of it is not the question here.
    answer = estimate(trace, hardware("trn1"), AS_WRITTEN)
    counts = {name: q.value for name, q in quantities(answer).items() if q.value is not None}
    # A measurement tells the waits of the busiest engine only.
    idle = {f"{e} waits": sum(wait.ns for wait in waits(answer.schedule, e)) / 1000 for e in (TENSOR, VECTOR)}
    return counts | idle


@pytest.mark.parametrize("case", REWRITTEN, ids=str)
def test_the_counters_move_as_the_catalogue_says(case: Case) -> None:
    """Each counter that a rule names moves its way or, where the case is too small to show it, does not move."""
    assert case.after is not None
    before, after = (counters(case.whole(body), *inputs()) for body in (case.before, case.after))
    rule = next(r for r in catalogue.rules() if r.name == case.rule)
    moved = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in rule.moves}
    assert all(moved[name] * (1 if way == "up" else -1) >= 0 for name, way in rule.moves.items()), moved
    assert any(moved.values()), moved
