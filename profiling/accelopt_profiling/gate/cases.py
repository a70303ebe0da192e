"""Which cases a candidate is checked on: seeds, distributions and shapes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

#: In the order of what they find per second spent; "original" is always run.
DISTRIBUTIONS = ("original", "large", "small", "negated", "rows", "integers")


@dataclass(frozen=True)
class Case:
    """One set of inputs. ``seed`` is known to the process that draws and to nobody else until the verdict.

    ``shape_index`` picks one of the problem's further ``shapes``; None is the main shape. A ``movable`` case may be
    drawn at a further shape instead when the main one is large.
    """

    name: str
    seed: int
    distribution: str = "original"
    shape_index: int | None = None
    movable: bool = False


@dataclass(frozen=True)
class CaseOptions:
    """What to check. ``seeds`` counts fresh draws of the original distribution; ``shapes`` bounds how many of the
    problem's further shapes are tried.

    Values are more than shapes can bring out at any size, so when the main inputs are larger than ``large_bytes`` the
    other distributions and draws use the largest further shape that is not. ``input_bytes`` bounds the inputs of all
    cases together: later cases that would go beyond it are left out, and the verdict says so.
    ``interpret_seconds`` is how long a Triton case may interpret programs before it goes on with a sample of them.
    """

    distributions: Sequence[str] = DISTRIBUTIONS
    seeds: int = 2
    shapes: int = 4
    large_bytes: int = 8 << 20
    input_bytes: int = 512 << 20
    interpret_seconds: float = 3.0


def plan_cases(options: CaseOptions) -> list[Case]:
    """The cases of one check, with fresh secret seeds from the system's generator.

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
    for name in DISTRIBUTIONS[1:]:
        if name in options.distributions:
            cases.append(Case(name, _seed(), name, movable=True))
    return cases


def _seed() -> int:
    return secrets.randbits(62)
