"""The values that a probe of the gate makes of inputs, without a problem."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast

from accelopt_profiling.gate.probes.probe import Change, Drawing
from accelopt_profiling.gate.probes.registry import VALUES
from accelopt_profiling.gate.request import Case
from accelopt_profiling.problems.problem import Problem


def values_of(
    probe: str,
    inputs: list[Any],
    seed: int = 1,
    work: Collection[str] = (),
    usable: Callable[[list[Any]], bool] = lambda inputs: True,
    numbers: Sequence[float] = (),
    own_reference: bool = False,
    number: int = 0,
) -> Change:
    """Return ``inputs`` as the probe of values changes them, and whether it does. The reference does the kinds of
    ``work``, and is finite on ``usable`` inputs; ``numbers`` are those of the candidate's text, ``number`` is that of
    the case among the probe's.
    """
    problem = Problem(lambda seed, shape: inputs, lambda values: (cast(Any, None), values))
    drawing = SimpleNamespace(
        own_reference=own_reference, problem=problem, kinds=frozenset(work), is_finite=usable,
        numbers=list(numbers), first=inputs,
    )  # fmt: skip
    case = Case(probe, seed, probe, number=number, alters=seed if VALUES[probe].rearranges else None)
    return VALUES[probe].inputs(cast(Drawing, drawing), inputs, case)
