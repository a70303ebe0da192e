"""Shapes to try besides those that a problem lists, when its ``get_inputs`` takes axes: doubled, odd, prime, one."""

from __future__ import annotations

from collections.abc import Mapping

#: At most so many shapes are derived.
DERIVED = 4


def derive_shapes(axes: Mapping[str, int], listed: bool = False) -> list[dict[str, int]]:
    """Keyword arguments for ``get_inputs``. Doubling keeps every divisibility, so it comes first, axis by axis; then
    all axes at once at the next lower prime (odd, and no multiple of a tile), and the first axis at one. Where the
    problem has ``listed`` shapes of its own they are left to it, and only what is larger is added.
    """
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
