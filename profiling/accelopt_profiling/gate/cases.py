"""Plan the cases of a check: seeds, distributions and sizes."""

from __future__ import annotations

import secrets

from accelopt_profiling.gate.probes.probe import SizeProbe
from accelopt_profiling.gate.probes.registry import SIZES, VALUES
from accelopt_profiling.gate.request import Case, CaseOptions


def plan_cases(
    options: CaseOptions, planned: bool = True, limits: bool = False, rewritten: bool = True
) -> list[Case]:
    """Return the cases of one check, with fresh secret seeds from the system's generator. ``planned`` tells that the
    original says how much is interpreted, ``limits`` that the candidate compares sizes with numbers, ``rewritten`` that
    there is an original beside it.

    Raises:
        ValueError: an unknown distribution.
    """
    names = list(VALUES) if options.distributions is None else options.distributions
    if unknown := set(names) - set(VALUES):
        raise ValueError(f"unknown distributions: {', '.join(sorted(unknown))}")
    cases = [Case("original", _seed())]
    cases += [Case(f"shape {n + 1}", _seed(), shape_index=n) for n in range(options.shapes)]
    for number in range(1, max(options.seeds, 1)):
        cases.append(Case(f"draw {number + 1}", _seed(), movable=True))
    shared = {probe.rearranges: _seed() for probe in VALUES.values() if probe.rearranges}
    for name, probe in VALUES.items():
        if name in names and name != "original" and (rewritten or not probe.beside_original):
            seed = shared[name] if name in shared else _seed()
            alters = shared.get(probe.rearranges)
            cases += [
                Case(name + n, seed if i == 0 else _seed(), name, movable=True, number=i, alters=alters)
                for i, n in enumerate(_numbers(probe.most))
            ]
    for chosen in SIZES.values():
        if _is_tried(chosen, options, planned=planned, limits=limits, rewritten=rewritten):
            cases += [
                Case(chosen.name + n, _seed(), sizes=chosen.name, number=i)
                for i, n in enumerate(_numbers(chosen.most))
            ]
    return cases


def _numbers(most: int) -> list[str]:
    """Return what tells the names of the cases of one probe apart."""
    return [f" {n + 1}" for n in range(most)] if most > 1 else [""]


def _is_tried(probe: SizeProbe, options: CaseOptions, planned: bool, limits: bool, rewritten: bool) -> bool:
    if probe.stands_in:
        return planned
    return (
        bool(options.shapes) and (limits or not probe.for_limits) and (rewritten or not probe.beside_original)
    )


def _seed() -> int:
    return secrets.randbits(62)
