"""Sizes that the gate chooses: beyond those that a problem states, and smaller ones that stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import prod

from accelopt_profiling.comparison.memory import arrays_of, byte_count
from accelopt_profiling.gate.probes.probe import Drawing, Shape, SizeProbe
from accelopt_profiling.problems.loading.sizes import ProblemSizes


class SmallerSizes(SizeProbe):
    """Sizes halved from the problem's own where those cannot be interpreted."""

    name = "smaller sizes"
    catches = "Anything wrong in launches that are too large to be interpreted, and of which a share tells too little."
    stands_in = True

    def shapes(self, drawing: Drawing) -> list[Shape]:
        large = drawing.large_bytes
        if drawing.dialect != "triton" or drawing.main.smaller or drawing.size <= large:
            return []
        sizes = ProblemSizes(drawing.problem)
        fit(sizes, drawing.target, large, large)
        return [dict(sizes.smaller)] if sizes.smaller else []

    def leaves_open(self, drawing: Drawing, shape: Mapping[str, int]) -> bool:
        return False


class DerivedShapes(SizeProbe):
    """Doubling keeps every divisibility, so it comes first, axis by axis; then all axes at once at the next lower prime
    (odd, and no multiple of a tile), and the first axis at one. Where the problem lists shapes of its own they are left
    to it, and only what is larger is added.
    """

    name = "derived shape"
    catches = (
        "Kernels that are right at the stated shape alone: tiles that do not divide, axes taken as given."
    )
    most = 5
    told = True

    def shapes(self, drawing: Drawing) -> list[Shape]:
        axes = _axes(drawing)
        if not axes:
            return []
        doubled = [{name: 2 * size} for name, size in axes.items()][:3]
        primes = {name: _prime_below(size) for name, size in axes.items()}
        return doubled if drawing.problem.shapes else [*doubled, primes, {next(iter(axes)): 1}]

    def too_large(self, drawing: Drawing) -> str:
        large = 4 * drawing.size > drawing.large_bytes or drawing.main.smaller
        return "the inputs are large enough at the main shape" if large else ""

    def leaves_open(self, drawing: Drawing, shape: Mapping[str, int]) -> bool:
        full = ProblemSizes(drawing.problem).full
        partial = drawing.dialect != "triton" and any(n % full[name] for name, n in shape.items())
        return not (drawing.problem.shapes or partial)


class LongAxes(SizeProbe):
    """One axis after another at seven times its size, the others small in Triton: a quarter or half where that is
    whole. An NKI kernel is made for the sizes of its tiles, so that the others stay. Last, all axes at one more than a
    power of two.
    """

    name = "long axis"
    catches = "Kernels that are right up to so many tiles, chunks or parts, or lose what a tile of one is left with."
    most = 4

    def shapes(self, drawing: Drawing) -> list[Shape]:
        axes = _axes(drawing)
        triton = drawing.dialect == "triton"
        small = {name: _share_of(size) if triton else size for name, size in axes.items()}
        long = [{**small, name: _LONG * size} for name, size in axes.items()][: self.most - 1]
        uneven = {name: 1 + (1 << max(0, (size - 1).bit_length() - 1)) for name, size in axes.items()}
        return [*long, uneven] if triton and not drawing.problem.shapes and axes else long

    def too_large(self, drawing: Drawing) -> str:
        return DerivedShapes().too_large(drawing)

    def leaves_open(self, drawing: Drawing, shape: Mapping[str, int]) -> bool:
        return DerivedShapes().leaves_open(drawing, shape)


#: So many times its size an axis is long; others keep at least so many elements.
_LONG, _LEAST = 7, 16


def _share_of(size: int) -> int:
    shares = (size // part for part in (4, 2) if size % part == 0)
    return next((share for share in shares if share % _LEAST == 0), size)


class BeyondLimits(SizeProbe):
    """Multiples of the problem's sizes beyond a number that the candidate compares something with by order: it says
    itself that it takes them.
    """

    name = "beyond a limit"
    catches = "Another way of computing, or a wrong one, from a size on that the candidate names."
    most = 3
    for_limits = True

    def shapes(self, drawing: Drawing) -> list[Shape]:
        if drawing.dialect != "triton" or drawing.main.smaller:
            return []
        beyond = shapes_beyond(ProblemSizes(drawing.problem).full, drawing.limits)
        return [shape for shape, times in beyond if times * drawing.size <= drawing.large_bytes]


def _axes(drawing: Drawing) -> dict[str, int]:
    """Return the sizes of a problem; of numbers, only those that an axis of the main case's inputs has are sizes."""
    sizes = ProblemSizes(drawing.problem)
    axes = {n for _, array in arrays_of(drawing.first) for n in array.shape}
    return {name: size for name, size in sizes.full.items() if not sizes.fixed or size in axes}


def shapes_beyond(axes: Mapping[str, int], limits: list[int]) -> list[tuple[Shape, int]]:
    """Return sizes at which one axis, or the product of all, is beyond one of ``limits`` as it is not at ``axes``, and
    how many times larger that is: multiples of the sizes, the nearest first.
    """
    shapes: dict[tuple[str, int], int] = {}
    for limit in limits:
        for name, size in axes.items():
            if size <= limit:
                shapes[name, size * (limit // size + 1)] = limit // size + 1
        total = prod(axes.values())
        first = next(iter(axes.items()), None)
        if first is not None and total <= limit:
            shapes[first[0], first[1] * (limit // total + 1)] = limit // total + 1
    return sorted((({name: size}, times) for (name, size), times in shapes.items()), key=lambda pair: pair[1])


def _prime_below(number: int) -> int:
    candidate = number - 1
    while candidate > 2 and any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate -= 1
    return max(candidate, 1)


def fit(sizes: ProblemSizes, target: str, most: int, wanted: int) -> None:
    """Make ``sizes`` smaller until the inputs take ``wanted`` bytes, if they take more than ``most`` as they are. They
    are drawn from the smallest on, so that none is drawn which does not fit.
    """
    from accelopt_profiling.gate.observe.emulation import hollow_draws

    steps = [sizes.smaller]
    while sizes.halve():
        steps.append(sizes.smaller)
    chosen = 0
    with hollow_draws(target):
        for number in reversed(range(len(steps) if len(steps) > 1 else 0)):
            size = 0
            with (
                suppress(Exception),
                sizes.at(steps[number]).applied(),
            ):  # the problem never promised to draw them
                size = byte_count(sizes.inputs(0))
            if size > most:
                break
            chosen = number if 0 < size <= wanted or number == 0 else chosen
    sizes.at(steps[chosen])
