"""The list of probes is whole, and the older receipts' cases are drawn by it."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from accelopt_profiling.gate import probes
from accelopt_profiling.gate.probes.probe import Probe, SizeProbe, ValueProbe
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.registry import PROBES
from accelopt_profiling.gate.probes.text import TEXT_PROBES
from accelopt_profiling.gate.receipts import _case
from accelopt_profiling.gate.request import Case

NAMED = {**{probe.name: probe.catches for probe in PROBES}, **TEXT_PROBES}


def test_every_probe_is_in_the_list_once() -> None:
    modules = [import_module(f"{probes.__name__}.{m.name}") for m in pkgutil.iter_modules(probes.__path__)]
    written = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Probe) and value.__module__ == module.__name__
    }
    listed = [type(probe) for probe in PROBES]
    assert {probe for probe in written if not probe.__name__.startswith("_")} == {
        *listed,
        Probe,
        ValueProbe,
        SizeProbe,
        Unpromised,
    }
    assert len(listed) == len(set(listed))
    assert len(NAMED) == len(PROBES) + len(TEXT_PROBES)


@pytest.mark.parametrize("name", NAMED)
def test_what_a_probe_catches_is_a_sentence(name: str) -> None:
    assert NAMED[name][0].isupper()
    assert NAMED[name].endswith(".")


@pytest.mark.parametrize(
    ("older", "sizes", "number"),
    [
        ({"derived": 2}, "derived shape", 2),
        ({"beyond": 0}, "beyond a limit", 0),
        ({"reduced": True}, "smaller sizes", 0),
        ({"derived": None, "beyond": None, "reduced": False}, "", 0),
    ],
)
def test_cases_of_older_receipts_are_read(older: dict[str, object], sizes: str, number: int) -> None:
    case = _case({"name": "a", "seed": 3, "distribution": "original", **older})
    assert case == Case("a", 3, sizes=sizes, number=number)
