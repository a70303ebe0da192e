"""Every rule of AWS's pages that is listed holds on the emulator, and the command tells those that do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from accelopt_benchmarks.nki import page_rules
from accelopt_benchmarks.nki.commands import nki
from accelopt_benchmarks.nki.conformance import judge
from accelopt_benchmarks.nki.page_rules import RULES


@pytest.mark.parametrize("function", sorted({rule.function for rule in RULES}))
def test_the_rules_of_a_page_hold(function: str) -> None:
    results = judge(rule for rule in RULES if rule.function == function)
    assert [
        f"{r.rule.text} ({r.rule.core}): {r.verdict}, {r.detail}" for r in results if r.verdict != "agrees"
    ] == []


def test_what_does_not_hold_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    right = next(rule for rule in RULES if rule.function == "nisa.max8")
    assert right.expected is not None
    rules = (
        right,
        replace(right, expected=right.expected + np.float32(1), text="another value"),
        replace(right, expected=None, text="is forbidden"),
        replace(right, told=True, text="is warned of"),
        replace(right, statements="o = nl.no_such_function(x)", text="is documented"),
        replace(right, statements="o = 1 / 0", text="ends in an error"),
    )
    monkeypatch.setattr(page_rules, "RULES", rules)
    outcome = CliRunner().invoke(nki, ["conformance", "--json"], standalone_mode=False)
    for rule in (
        "differs: 256 of 256",
        "accepted",
        "accepted: nothing is told of it",
        "refused: ",
        "fails: ZeroDivisionError",
    ):
        assert rule in outcome.output
