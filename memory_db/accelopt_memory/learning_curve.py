"""Tells from the outcomes whether searches got shorter: the tries that each kernel needed until one helped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from accelopt_memory.outcomes import Outcome

#: The mean at a kernel is over it and so many before it.
WINDOW = 5


@dataclass(frozen=True)
class KernelTries:
    """The ``tries`` on one kernel and target, and which of them (from 1) was the ``first_gain``, if any; ``mean`` is
    that of the kernels up to this one, a kernel without a gain counting with all of its tries."""

    task: str
    target: str
    began: str
    tries: int
    first_gain: int | None
    mean: float


def learning_curve(outcomes: Sequence[Outcome]) -> list[KernelTries]:
    """Return the kernels in the order in which they were first searched. ``outcomes`` are oldest first."""
    tried: dict[tuple[str, str], list[Outcome]] = {}
    for one in outcomes:
        tried.setdefault((one.task, one.target), []).append(one)
    curve: list[KernelTries] = []
    needed: list[int] = []
    for (task, target), tries in tried.items():
        gain = next((number for number, one in enumerate(tries, 1) if one.helped), None)
        needed.append(gain or len(tries))
        curve.append(
            KernelTries(task, target, tries[0].created, len(tries), gain, fmean(needed[-WINDOW - 1 :]))
        )
    return curve
