"""Plan the cases of a check: seeds, distributions and shapes."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from math import prod

from accelopt_profiling.gate.request import ALTERED, DISTRIBUTIONS, Case, CaseOptions


def plan_cases(options: CaseOptions) -> list[Case]:
    """Return the cases of one check, with fresh secret seeds from the system's generator.

    Raises:
        ValueError: an unknown distribution.
    """
    unknown = set(options.distributions) - set(DISTRIBUTIONS)
    if unknown:
        raise ValueError(f"unknown distributions: {', '.join(sorted(unknown))}")
    cases = [Case("original", _seed())]
    cases += [Case(f"shape {n + 1}", _seed(), shape_index=n) for n in range(options.shapes)]
    for number in range(1, max(options.seeds, 1)):
        cases.append(Case(f"draw {number + 1}", _seed(), movable=True))
    integers = _seed()
    for name in DISTRIBUTIONS[1:]:
        if name in options.distributions:
            seed, alters = integers if name == "integers" else _seed(), integers if name in ALTERED else None
            cases.append(Case(name, seed, name, movable=True, alters=alters))
    cases.append(Case("smaller sizes", _seed(), reduced=True))
    if options.shapes:
        cases += [Case(f"derived shape {n + 1}", _seed(), derived=n) for n in range(DERIVED)]
    return cases


def cases_beyond() -> list[Case]:
    """Return the cases of a candidate that compares sizes with numbers."""
    return [Case(f"beyond a limit {n + 1}", _seed(), beyond=n) for n in range(BEYOND)]


def shapes_beyond(axes: Mapping[str, int], limits: list[int]) -> list[tuple[dict[str, int], int]]:
    """Return sizes at which one axis, or the product of all, is beyond one of ``limits`` as it is not at ``axes``, and
    how many times larger that is: multiples of the sizes, the nearest first.
    """
    found: dict[tuple[tuple[str, int], ...], int] = {}
    for limit in limits:
        for name, size in axes.items():
            if size <= limit:
                found[((name, size * (limit // size + 1)),)] = limit // size + 1
        total = prod(axes.values())
        first = next(iter(axes.items()), None)
        if first is not None and total <= limit:
            found[((first[0], first[1] * (limit // total + 1)),)] = limit // total + 1
    return sorted(((dict(sizes), times) for sizes, times in found.items()), key=lambda pair: pair[1])


def _seed() -> int:
    return secrets.randbits(62)


#: At most so many shapes are derived, and chosen beyond limits of sizes.
DERIVED, BEYOND = 4, 3


def derive_shapes(axes: Mapping[str, int], listed: bool = False) -> list[dict[str, int]]:
    """Return keyword arguments for ``get_inputs``. Doubling keeps every divisibility, so it comes first, axis by
    axis; then all axes at once at the next lower prime (odd, and no multiple of a tile), and the first axis at
    one. Where the problem has ``listed`` shapes of its own they are left to it, and only what is larger is added."""
    if not axes:
        return []
    doubled = [{name: 2 * size} for name, size in axes.items()]
    primes = {name: _prime_below(size) for name, size in axes.items()}
    first = next(iter(axes))
    return doubled[:2] if listed else [*doubled[:2], primes, {first: 1}][:DERIVED]


def _prime_below(number: int) -> int:
    candidate = number - 1
    while candidate > 2 and any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate -= 1
    return max(candidate, 1)
