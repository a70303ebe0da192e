"""Which cases a candidate is checked on: seeds, distributions and shapes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_profiling.gate.long_sums import LONG_SUMS
from accelopt_profiling.gate.lopsided import LOPSIDED
from accelopt_profiling.gate.shapes import DERIVED

#: In the order of what they find per second spent; "original" is always run. The last two are the exact integers
#: before them, altered: "same sums" keeps the first input and moves elements about in the others, "same rest" moves
#: them about in the first. Sums, extremes, first and last elements stay, so that a result that was remembered by a
#: fingerprint of its inputs shows.
DISTRIBUTIONS = (
    "original", "large", "small", *LOPSIDED, "rows", *LONG_SUMS, "integers", "same sums", "same rest",
)  # fmt: skip
ALTERED = ("same sums", "same rest")


@dataclass(frozen=True)
class Case:
    """One set of inputs. ``seed`` is known to the process that draws and to nobody else until the verdict.

    ``shape_index`` picks one of the problem's further ``shapes``; None is the main shape. ``derived`` picks one of
    the shapes that the gate derives from the axes of a problem: there a candidate has to do what the
    original does. A ``movable`` case may be drawn at a further shape instead when the main one is large.
    """

    name: str
    seed: int
    distribution: str = "original"
    shape_index: int | None = None
    movable: bool = False
    derived: int | None = None


@dataclass(frozen=True)
class CaseOptions:
    """What to check. ``seeds`` counts fresh draws of the original distribution; ``shapes`` bounds how many of the
    problem's further shapes are tried.

    Values are more than shapes can bring out at any size, so when the main inputs are larger than ``large_bytes`` the
    other distributions and draws use the largest further shape that is not. ``input_bytes`` bounds the inputs of all
    cases together: later cases that would go beyond it are left out, and the verdict says so.
    ``interpret_seconds`` is how long a Triton case may interpret programs before it goes on with a sample of them.
    ``repeats`` and ``repeat_seconds`` bound the further calls on data that was seen before. ``reading`` lets what the
    candidate's text says refuse it; the gate's own tests do without, to see what the run finds by itself.
    """

    distributions: Sequence[str] = DISTRIBUTIONS
    seeds: int = 2
    shapes: int = 4
    large_bytes: int = 8 << 20
    input_bytes: int = 512 << 20
    interpret_seconds: float = 3.0
    repeats: int = 24
    repeat_seconds: float = 0.3
    reading: bool = True


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
    if options.shapes:
        cases += [Case(f"derived shape {n + 1}", _seed(), derived=n) for n in range(DERIVED)]
    return cases


def _seed() -> int:
    return secrets.randbits(62)
