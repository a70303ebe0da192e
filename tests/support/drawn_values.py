"""The values that a probe of the gate makes of inputs, without a problem."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast

from accelopt_profiling.gate.probes.probe import Change, Drawing
from accelopt_profiling.gate.probes.registry import VALUES
from accelopt_profiling.gate.request import Case


def values_of(
    probe: str,
    inputs: list[Any],
    seed: int = 1,
    work: Collection[str] = (),
    usable: Callable[[list[Any]], bool] = lambda inputs: True,
    numbers: Sequence[float] = (),
) -> Change:
    """Return ``inputs`` as the probe of values changes them, and whether it does. The reference does the kinds of
    ``work``, and is finite on ``usable`` inputs; ``numbers`` are those of the candidate's text.
    """
    problem = SimpleNamespace(reference=lambda inputs: None)
    drawing = SimpleNamespace(
        own_reference=False, problem=problem, kinds=frozenset(work), is_finite=usable, numbers=list(numbers)
    )
    case = Case(probe, seed, probe, alters=seed if VALUES[probe].rearranges else None)
    return VALUES[probe].inputs(cast(Drawing, drawing), inputs, case)
