"""Sizes that the gate chooses: beyond those that a problem states, and smaller ones that stand for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import cycle
from math import prod

from accelopt_profiling.comparison.memory import arrays_of, byte_count
from accelopt_profiling.gate.probes.probe import COUNTED_BYTES, AnsweredCheck, Drawing, Shape, SizeProbe
from accelopt_profiling.gate.verdict import Reason
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
    """Doubling keeps every divisibility, so it comes first, axis by axis.

    Then all axes at once at the next lower prime (odd, and no multiple of a tile), and the first axis at one. Where the
    problem lists shapes of its own they are left to it, and only what is larger is added.
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
        doubled = [{name: 2 * size} for name, size in doubled_axes(drawing).items()]
        primes = {name: _prime(size, -1) for name, size in axes.items()}
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


class UnevenSizes(SizeProbe):
    """All sizes at once small, odd and unequal, flags turned.

    All at the next primes; all at odd multiples of sixteen; all at one, what is one at two, and numbers that are no
    sizes beyond 16 bits. What the reference takes of that: where it does not take all, one size after another changes,
    as far as it does. In NKI, where an axis may have to fill its tiles, the last two are at the next prime by
    themselves as well. A candidate may raise there.
    """

    name = "uneven sizes"
    catches = "Rests of tiles that are loaded or counted, ratios of sizes taken as given, numbers and flags written in."
    most = 6
    beside_original = may_raise = True

    def shapes(self, drawing: Drawing) -> list[Shape]:
        if drawing.size > COUNTED_BYTES or drawing.main.smaller:
            return []
        axes = {**drawing.problem.choices, **_axes(drawing)}
        primes = {name: _prime(size, 1) for name, size in _axes(drawing).items() if size > 1}
        wishes = [_odd(axes), primes, _sixteens(axes), _least(axes, _numbers(drawing, axes))]
        if drawing.dialect == "nki":
            wishes += [{name: size} for name, size in reversed(primes.items())][: self.most - len(wishes)]
        return [shape for wish in wishes if wish and (shape := _as_taken(drawing, wish))]

    def leaves_open(self, drawing: Drawing, shape: Mapping[str, int]) -> bool:
        return False


#: Odd sizes; odd multiples of sixteen, for sizes that are at least twice the first; what is kept in 16 bits loses this.
_ODD, _SIXTEENS, _WIDE = (3, 5, 7, 9, 11, 13, 15, 17), (48, 80, 112, 144, 176, 208), 5 << 16


def _odd(axes: Mapping[str, int]) -> Shape:
    odd = cycle(_ODD)
    return {
        name: not size if type(size) is bool else next(odd)
        for name, size in axes.items()
        if type(size) is bool or size > 1
    }


def _sixteens(axes: Mapping[str, int]) -> Shape:
    sixteens = cycle(_SIXTEENS)
    return {name: next(sixteens) for name, size in axes.items() if size >= 2 * _SIXTEENS[0]}


def _least(axes: Mapping[str, int], numbers: set[str]) -> Shape:
    sizes = {name: 2 if size == 1 else 1 for name, size in axes.items() if type(size) is int}
    return {name: axes[name] + _WIDE if name in numbers else size for name, size in sizes.items()}


def _numbers(drawing: Drawing, axes: Mapping[str, int]) -> set[str]:
    """Return the names of whole numbers that no array's size depends on: one more of them draws arrays of the same
    shapes.
    """
    shapes = [tuple(array.shape) for _, array in arrays_of(drawing.first)]
    extents, numbers = {n for shape in shapes for n in shape}, set()
    for name, size in axes.items():
        if type(size) is int and (size < 2 or size not in extents):
            sizes = ProblemSizes(drawing.problem).at({name: size + 1})
            with suppress(Exception), sizes.applied():  # the problem never promised to draw them
                if [tuple(array.shape) for _, array in arrays_of(sizes.inputs(0))] == shapes:
                    numbers.add(name)
    return numbers


def _as_taken(drawing: Drawing, wish: Shape) -> Shape:
    """Return the sizes of ``wish`` that the reference takes together."""
    if drawing.takes(wish):
        return wish
    shape: Shape = {}
    for name, size in wish.items():
        if drawing.takes({**shape, name: size}):
            shape[name] = size
    return shape


class WideLaunches(SizeProbe):
    """One axis after another at 65536, the others small.

    Nothing is computed there: only grids and warps of the launches are looked at, where the target takes those of the
    original.
    """

    name = "wide launches"
    catches = "Grids and warps that grow with a size beyond what the target takes, at sizes that are not run."
    most = 3
    beside_original = True
    launches_only = True

    def shapes(self, drawing: Drawing) -> list[Shape]:
        if drawing.dialect != "triton" or drawing.main.smaller:
            return []
        axes = _axes(drawing)
        small = {name: min(size, _LEAST) for name, size in axes.items()}
        return [{**small, name: _WIDE_AXIS} for name in axes][: self.most]

    def of_run(self, check: AnsweredCheck) -> Iterator[Reason]:
        launch, original = check.evidence.launch, check.evidence.original
        if launch is None or original is None:
            return
        for where, fault in launch.wide.items():
            if fault and original.wide.get(where) == "":
                message = f"At {where}, where the target takes the original's launches: {fault}"
                yield Reason("capacity", message)


#: One program more than an axis of a grid takes, on NVIDIA's devices but for the first.
_WIDE_AXIS = 1 << 16


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
    """Return the sizes of a problem.

    Of numbers, only those that an axis of the main case's inputs has are sizes.
    """
    sizes = ProblemSizes(drawing.problem)
    axes = {n for _, array in arrays_of(drawing.first) for n in array.shape}
    return {name: size for name, size in sizes.full.items() if not sizes.fixed or size in axes}


def doubled_axes(drawing: Drawing) -> dict[str, int]:
    """Return the sizes of a problem that are tried twice as large, each by itself."""
    return dict(list(_axes(drawing).items())[:3])


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


def _prime(number: int, step: int) -> int:
    """Return the next prime above (``step`` 1) or below a number (-1). 1 where there is none below."""
    candidate = number + step
    while candidate > 2 and any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate += step
    return max(candidate, 1)


def fit(sizes: ProblemSizes, target: str, most: int, budget: int) -> None:
    """Make ``sizes`` smaller until the inputs take ``budget`` bytes, if they take more than ``most`` as they are. They
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
            chosen = number if 0 < size <= budget or number == 0 else chosen
    sizes.at(steps[chosen])
