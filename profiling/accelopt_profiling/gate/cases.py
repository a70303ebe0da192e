"""Which cases a candidate is checked on: seeds, distributions and shapes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: In the order of what they find per second spent; "original" is always run.
DISTRIBUTIONS = ("original", "large", "small", "negated", "rows", "integers")


@dataclass(frozen=True)
class Case:
    """One set of inputs. ``seed`` is known to the process that draws and to nobody else until the verdict.

    ``shape`` is a set of keyword arguments for ``get_inputs``; None is the problem's main shape.
    ``shape_index`` picks one of the problem's ``shapes`` instead, where the caller does not know them.
    ``twice`` runs it twice.
    """

    name: str
    seed: int
    distribution: str = "original"
    shape: dict[str, Any] | None = None
    shape_index: int | None = None
    twice: bool = False


@dataclass(frozen=True)
class CaseOptions:
    """What to check. ``seeds`` counts fresh draws of the original distribution at the main shape; ``shapes``
    bounds how many of the problem's further shapes are tried. ``input_bytes`` bounds the inputs of all cases
    together: later cases that would go beyond it are left out, and the verdict says so.
    """

    distributions: Sequence[str] = DISTRIBUTIONS
    seeds: int = 1
    shapes: int = 4
    input_bytes: int = 2 << 30


def plan_cases(options: CaseOptions) -> list[Case]:
    """The cases of one check, with fresh secret seeds from the system's generator.

    Raises:
        ValueError: an unknown distribution.
    """
    unknown = set(options.distributions) - set(DISTRIBUTIONS)
    if unknown:
        raise ValueError(f"unknown distributions: {', '.join(sorted(unknown))}")
    cases = [Case("original", _seed(), twice=True)]
    for number in range(1, max(options.seeds, 1)):
        cases.append(Case(f"original, draw {number + 1}", _seed()))
    for name in DISTRIBUTIONS[1:]:
        if name in options.distributions:
            cases.append(Case(name, _seed(), name))
    cases += [Case(f"shape {n + 1}", _seed(), shape_index=n) for n in range(options.shapes)]
    return cases


def _seed() -> int:
    return secrets.randbits(62)
