"""Every rule of AWS's pages that has a case holds on the emulator, and the command tells those that do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from accelopt_benchmarks.nki import conformance_cases
from accelopt_benchmarks.nki.commands import nki
from accelopt_benchmarks.nki.conformance import judge
from accelopt_benchmarks.nki.conformance_cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.function}: {case.rule} ({case.core})")
def test_a_rule_of_a_page_holds(case: Case) -> None:
    (result,) = judge([case])
    assert result.verdict == "agrees", result.detail


def test_what_does_not_hold_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    right = next(case for case in CASES if case.function == "nisa.max8")
    assert right.expected is not None
    cases = (
        right,
        replace(right, expected=right.expected + np.float32(1), rule="another value"),
        replace(right, expected=None, rule="is forbidden"),
        replace(right, statements="o = nl.no_such_function(x)", rule="is documented"),
        replace(right, statements="o = 1 / 0", rule="ends in an error"),
    )
    monkeypatch.setattr(conformance_cases, "CASES", cases)
    outcome = CliRunner().invoke(nki, ["conformance", "--json"], standalone_mode=False)
    for rule in ("differs: 256 of 256", "accepted", "refused: ", "fails: ZeroDivisionError"):
        assert rule in outcome.output
