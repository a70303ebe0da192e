"""Every function that AWS documents takes each of its documented arguments by its name and at its place."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import nki_source

from accelopt_profiling.nki.beta1 import isa as beta1_isa
from accelopt_profiling.nki.beta1 import language as beta1_language
from accelopt_profiling.nki.current import isa as current_isa
from accelopt_profiling.nki.current import language as current_language
from accelopt_profiling.nki.current.versions import table
from accelopt_profiling.nki.frontend.operators import NlOperation

DOCUMENTED = json.loads(Path(__file__).with_name("documented_signatures.json").read_text("utf-8"))
TABLES = {
    ("beta1", "nisa"): beta1_isa.names(),
    ("beta1", "nl"): beta1_language.names(),
    ("current", "nisa"): current_isa.names(),
    ("current", "nl"): current_language.names(),
}


def emulated(dialect: str, name: str) -> Callable[..., Any] | None:
    """Return the function of a documented name; None where it is not emulated as a function."""
    package, _, function = name.partition(".")
    entry = TABLES[dialect, package].get(function)
    if isinstance(entry, NlOperation):
        call = vars(type(entry)).get("__call__")
        closure = getattr(call, "__closure__", None)
        return (
            next(c.cell_contents for c in closure if inspect.isfunction(c.cell_contents)) if closure else None
        )
    return entry if callable(entry) else None


@pytest.mark.parametrize(
    ("dialect", "name"),
    [(d, n) for d in ("beta1", "current") for n in DOCUMENTED[d] if emulated(d, n) is not None],
)
def test_documented_arguments_are_taken(dialect: str, name: str) -> None:
    function = emulated(dialect, name)
    assert function is not None
    documented = DOCUMENTED[dialect][name].split()
    ours = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    by_name = {p.name for p in ours if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    names = [d.rstrip("=") for d in documented if not d.startswith("*")]
    if all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in ours):  # it looks at none of them
        assert len(ours) == 2 or not names
        return
    assert [n for n in names if n not in by_name] == []
    positional = [d.rstrip("=") for d in documented[: documented.index("*")]] if "*" in documented else names
    places = [p.name for p in ours if p.kind is p.POSITIONAL_OR_KEYWORD]
    if not any(d.startswith("*") and d != "*" for d in documented):
        assert places[: len(positional)] == positional


@pytest.mark.parametrize("dialect", ["beta1", "current"])
def test_what_is_documented_and_not_emulated_is_known(dialect: str) -> None:
    absent = sorted(n for n in DOCUMENTED[dialect] if emulated(dialect, n) is None)
    assert absent == DOCUMENTED["not emulated"][dialect]


def test_nothing_that_is_documented_is_told_to_be_gone() -> None:
    """Of what a compiler's older front end still takes, that is said."""
    full = {"nl": "nki.language", "nisa": "nki.isa"}
    for name in DOCUMENTED["current"]:
        package, _, short = name.partition(".")
        change = table()["names"].get(f"{full.get(package, package)}.{short}", {})
        assert "removed" not in change or "unless" in change, name


def test_a_reduction_over_a_loop_takes_its_arguments_by_name() -> None:
    body = """
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=nl.float32)
    for i in nl.affine_range(2):
        total[...] = nl.loop_reduce(x=nl.load(a[i * 128:(i + 1) * 128, :]), op=np.add, loop_indices=i)
    nl.store(out, total)
    return out
    """
    array = np.random.default_rng(0).standard_normal((256, 64), dtype=np.float32)
    outcome = nki_source.run(body, array)
    assert outcome.fault is None
    np.testing.assert_allclose(outcome.result, array[:128] + array[128:], rtol=1e-6)
