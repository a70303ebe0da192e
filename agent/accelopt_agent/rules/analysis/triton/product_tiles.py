"""Finds the tile of a matrix product, ranks sizes for it, and changes them.

The rank is by a simple count: waves of programs, and per program the larger of tensor-core time and L2 time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.block_size import grid_axes
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.launch_sizes import LaunchSizes, Resize, option, options_edits
from accelopt_agent.rules.analysis.triton.tile_dimensions import TileDimension, TileDimensions
from accelopt_profiling.targets import GpuTarget, UnknownTargetError, load_gpu

#: Triton's defaults for a launch that says nothing.
_WARPS, _STAGES = 4, 3

#: Edits of the kernel, edits outside of it, and keyword arguments that its launch has to get.
Resized = tuple[list[ByteEdit], list[ByteEdit], dict[str, str]]


@dataclass(frozen=True)
class TileSide:
    """One side of the product's tile: its size, and the argument that holds it (None for numbers in the kernel)."""

    dimensions: tuple[TileDimension, ...]
    name: str | None
    size: int

    @property
    def axes(self) -> frozenset[int]:
        return frozenset(a for d in self.dimensions for a in d.axes)

    @property
    def bounds(self) -> frozenset[str]:
        return frozenset(b for d in self.dimensions for b in d.bounds)

    @property
    def guarded(self) -> bool:
        return all(d.guarded for d in self.dimensions)


@dataclass(frozen=True)
class ProductTiles:
    """The sides of one kernel's tile: rows, columns and inner of a product, or rows and columns of attention scores."""

    kernel: TritonKernel
    launch: KernelLaunch
    launched: LaunchSizes
    analysis: TileDimensions
    sides: tuple[TileSide, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(side.size for side in self.sides)

    def rewrite(self, new: tuple[int, ...], warps: int, stages: int) -> Rewrite | None:
        """Return the kernel and its launch with a tile of ``new`` sizes.

        Launch options that are computed stay.
        """
        options = {}
        for name, value, default in (("num_warps", warps, _WARPS), ("num_stages", stages, _STAGES)):
            present = option(self.launch, name, default)
            if present is not None and present != value:
                options[name] = str(value)
        resized = self._resized(new) if new != self.sizes or options else None
        if resized is None:
            return None
        inside, outside, added = resized
        options = {**added, **options}
        outside += options_edits(self.kernel, self.launch.call, options) if options else []
        tile, was = ("x".join(str(n) for n in sizes) for sizes in (new, self.sizes))
        tuned = [f"{options[n]} {n[4:]}" for n in ("num_warps", "num_stages") if n in options]
        summary = f"Tiles of {tile} instead of {was}{', with ' if tuned else ''}{' and '.join(tuned)}."
        return Rewrite(tuple(inside), summary, tuple(outside))

    def _resized(self, new: tuple[int, ...]) -> Resized | None:
        """Return the edits that give the sides new sizes.

        None where that cannot be followed.

        A side whose accesses have no mask keeps its size where the new one does not divide.
        """
        names = self._names(new)
        if names is None:
            return None
        outside: list[ByteEdit] = []
        resizes: list[Resize] = []
        added: dict[str, str] = {}
        texts: dict[str, tuple[int, int, list[str]]] = {}
        for side, size, name in zip(self.sides, new, names, strict=True):
            text = str(size)
            if not side.guarded and size > side.size:
                condition = self._divides(side, size)
                if condition is None:
                    return None
                if texts.setdefault(name, (size, side.size, []))[:2] != (size, side.size):
                    return None
                texts[name][2].append(condition)
        lines = []
        for name, (size, old, conditions) in texts.items():
            variable = _variable(name)
            lines.append(f"{variable} = {size} if {' and '.join(dict.fromkeys(conditions))} else {old}")
        for side, size, name in zip(self.sides, new, names, strict=True):
            text = _variable(name) if name in texts else str(size)
            if side.name == name:
                resizes.append(
                    Resize(name, side.size, new=size, text=text, axes=side.axes, bounds=side.bounds)
                )
            else:
                added[name] = text
                if side.axes:
                    resizes.append(
                        Resize(None, side.size, new=size, text=text, axes=side.axes, bounds=side.bounds)
                    )
        edits = self.launched.edits(resizes)
        if edits is None:
            return None
        outside += edits
        if lines:
            anchor = self._anchor()
            if anchor is None or any(_variable(n) in self._words(anchor) for n in texts):
                return None
            outside.append(self.kernel.source.before(anchor, "\n".join(lines)))
        return [*self._renamed(names)], outside, added

    def _names(self, new: tuple[int, ...]) -> tuple[str, ...] | None:
        """Return the argument that each side gets: its own, or a new one where it has none or shares one that
        cannot stay shared."""
        if len(self.sides) != 3:
            names = tuple(side.name for side in self.sides if side.name is not None)
            return names if len(set(names)) == len(self.sides) else None
        rows, columns, inner = self.sides
        names_in_use = {*self.kernel.parameters, *(n.value for n in self.kernel.flow.names)}
        side_names = [side.name for side in self.sides]
        if rows.name is None:
            names = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
            return names if not names_in_use & set(names) and side_names == [None] * 3 else None
        if columns.name is None or inner.name is None:
            return None
        if rows.name == columns.name and new[0] != new[1]:
            return None
        own = inner.name
        if own in (rows.name, columns.name) and new[2] != new[0]:
            own = f"{inner.name}_K" if inner.name.isupper() else f"{inner.name}_k"
            if own in names_in_use:
                return None
        return rows.name, columns.name, own

    def _renamed(self, names: tuple[str, ...]) -> list[ByteEdit]:
        """Write the new arguments where the sizes of their sides stand, and declare them."""
        source, edits, declared = self.kernel.source, [], []
        for side, name in zip(self.sides, names, strict=True):
            if side.name != name:
                declared.append(name)
                edits += [source.replace(n, name) for d in side.dimensions for n in d.sizes]
        return [*edits, *(self.kernel.declared(declared, "32") if declared else [])]

    def _divides(self, side: TileSide, size: int) -> str | None:
        """Return the condition at the launch under which ``size`` divides the length of a side."""
        source = self.kernel.source
        bounds = [self.launch.arguments[b] for b in sorted(side.bounds) if b in self.launch.arguments]
        axes = grid_axes(self.kernel, self.launch)
        expressions = axes[0] if axes is not None else []
        if not bounds and len(side.axes) == 1 and next(iter(side.axes)) < len(expressions):
            expression = expressions[next(iter(side.axes))]
            divided = [self.launched.dividend(n) for n in source.below(expression)]
            bounds = [d for d in divided if d is not None]
        texts = {source.code(b) for b in bounds}
        if len(texts) != 1 or not all(
            isinstance(b, (cst.Name, cst.Subscript, cst.Attribute)) for b in bounds
        ):
            return None
        return f"{texts.pop()} % {size} == 0"

    def _anchor(self) -> cst.CSTNode | None:
        """Return the statement before which block sizes have to be known: the grid's, or the launch's."""
        grid = self.launch.grid
        assigned = self.kernel.assigned(self.launch, grid.value) if isinstance(grid, cst.Name) else None
        if isinstance(grid, cst.Name) and assigned is None:
            return None
        at: cst.CSTNode = assigned or self.launch.call
        lines = (p for p in self.kernel.source.parents(at) if isinstance(p, cst.SimpleStatementLine))
        return next(lines, None)

    def _words(self, anchor: cst.CSTNode) -> set[str]:
        function = self.launch.function
        return {n.value for n in self.kernel.source.walk(function or anchor, cst.Name)}


def _variable(name: str) -> str:
    return name.lower()


def open_product(subject: RuleContext, launch: KernelLaunch) -> ProductTiles | None:
    """Return the product's tile, if the kernel is one product whose tile sizes are numbers at the launch or
    in the kernel."""
    analysis = subject.analysis(TileDimensions)
    kernel, launched = analysis.kernel, LaunchSizes(analysis.kernel, launch)
    if not analysis.products:
        return None
    sides = []
    for kind in ("rows", "columns", "inner"):
        dimensions = [getattr(p, kind) for p in analysis.products]
        side = _side(analysis, launched, dimensions)
        if side is None:
            return None
        sides.append(side)
    rows, columns, inner = sides
    if not rows.axes or not columns.axes or inner.axes or not any(d.loops for d in inner.dimensions):
        return None
    if {id(d) for d in rows.dimensions} & {id(d) for d in (*columns.dimensions, *inner.dimensions)}:
        return None
    return ProductTiles(kernel, launch, launched=launched, analysis=analysis, sides=(rows, columns, inner))


def open_attention(subject: RuleContext, launch: KernelLaunch) -> ProductTiles | None:
    """Return the tile of scores of an attention kernel: rows by a grid axis, columns by a loop; None where
    the kernel is a single product or its sizes are no numbers at the launch."""
    analysis = subject.analysis(TileDimensions)
    launched = LaunchSizes(analysis.kernel, launch)
    shapes = {(id(p.rows), id(p.columns), id(p.inner)) for p in analysis.products}
    used = [d for p in analysis.products for d in (p.rows, p.columns, p.inner)]
    by_axis = {id(d): d for d in used if d.axes and not d.loops and d.tiles}
    by_loop = {id(d): d for d in used if d.loops and not d.axes and d.tiles}
    if len(shapes) < 2 or len(by_axis) != 1 or len(by_loop) != 1:
        return None
    sides = [_side(analysis, launched, list(group.values())) for group in (by_axis, by_loop)]
    tile_sides = tuple(side for side in sides if side is not None and side.name is not None)
    return (
        ProductTiles(analysis.kernel, launch, launched=launched, analysis=analysis, sides=tile_sides)
        if len(tile_sides) == 2
        else None
    )


def _side(
    analysis: TileDimensions, launched: LaunchSizes, dimensions: list[TileDimension]
) -> TileSide | None:
    names = set().union(*(d.names for d in dimensions))
    numbers = {n for d in dimensions for t in d.tiles if (n := integer(t)) is not None}
    if len(names) == 1 and not numbers:
        (name,) = names
        value = launched.value(name)
        unique = list({id(d): d for d in dimensions}.values())
        return TileSide(tuple(unique), name, value.value) if value is not None else None
    if len(numbers) == 1 and not names:
        unique = list({id(d): d for d in dimensions}.values())
        loose = {integer(n) for n in analysis.loose}
        return TileSide(tuple(unique), None, numbers.pop()) if not numbers & loose else None
    return None


@dataclass(frozen=True)
class ProductSchedule:
    """Tile sizes of one program and the launch options that go with them."""

    rows: int
    columns: int
    inner: int
    warps: int
    stages: int


@dataclass(frozen=True)
class PresentProduct:
    """What is known of the product as it is: tile sizes, programs of its launch (None where not measured) and bytes per
    element of its operands."""

    rows: int
    columns: int
    inner: int
    programs: float | None
    element_bytes: int

    @property
    def outputs(self) -> float | None:
        return None if self.programs is None else self.programs * self.rows * self.columns


def present_product(subject: RuleContext, rows: int, columns: int, inner: int) -> PresentProduct:
    """Return the bytes of an element follow from the traffic of tiles: rows and columns are loaded once per
    step of inner."""
    quantities = subject.measurement.quantities if subject.measurement is not None else {}
    value = {name: q.value for name, q in quantities.items() if q.value}
    programs, loads, flops = value.get("programs"), value.get("load_bytes"), value.get("mma_flops")
    exact = 2.0
    if loads and flops:
        exact = loads / flops * 2 * rows * columns / (rows + columns)
    element = min((1, 2, 4), key=lambda n: abs(math.log2(max(exact, 0.1) / n)))
    return PresentProduct(rows, columns, inner=inner, programs=programs, element_bytes=element)


#: Accumulators of more 32-bit registers than this per thread leave too few for operands and addresses.
_MOST_ACCUMULATORS = 128
_SIDES = (16, 32, 64, 128, 256)
#: Narrower tiles than this serve a narrow output only.
_NARROW = 32
#: A step along the inner dimension reads this many bytes of each row: a whole cache line.
_LINE = 128
#: The share of the present cost below which another tile is worth a try.
_WORTHWHILE = 0.95
#: Output elements that are assumed where the launch was not measured.
_OUTPUTS = 4096 * 4096


def schedules(subject: RuleContext, present: PresentProduct) -> list[ProductSchedule]:
    """Return tile schedules that fit the target and promise more than the present tile, the most promising first."""
    try:
        target = load_gpu(subject.target or "h100")
    except UnknownTargetError:
        return []
    fitting = sorted(_fitting(target, present), key=lambda s: _cost(target, present, s))
    now = _cost(
        target,
        present,
        ProductSchedule(present.rows, present.columns, inner=present.inner, warps=4, stages=3),
    )[0]
    best: dict[tuple[int, int], ProductSchedule] = {}
    for schedule in fitting:
        if _cost(target, present, schedule)[0] < now * _WORTHWHILE:
            best.setdefault((schedule.rows, schedule.columns), schedule)
    return list(best.values())


def _fitting(target: GpuTarget, present: PresentProduct) -> Iterator[ProductSchedule]:
    capacity = int(target["shared_memory_per_program"])
    least = max(16, _LINE // present.element_bytes // 2)
    for inner in (least, 2 * least):
        for rows in (side for side in _SIDES if side >= min(_NARROW, present.rows)):
            for columns in (side for side in _SIDES if side >= min(_NARROW, present.columns)):
                warps = 8 if rows * columns >= 128 * 128 else 4
                if rows * columns / (warps * 32) > _MOST_ACCUMULATORS or max(rows, columns) > 8 * min(
                    rows, columns
                ):
                    continue
                stage = (rows + columns) * inner * present.element_bytes
                stages = min(4, capacity // stage)
                if stages >= 2:
                    yield ProductSchedule(rows, columns, inner=inner, warps=warps, stages=stages)


def _cost(target: GpuTarget, present: PresentProduct, schedule: ProductSchedule) -> tuple[float, float]:
    """Relative time of the whole product, per step of one element along the inner dimension."""
    units = target["multiprocessors"]
    name = {4: "peak.tf32", 2: "peak.fp16", 1: "peak.int8"}[present.element_bytes]
    flops = (
        target.get(name, target.get("peak.fp16", 1e14)) * target.get("model.tensor_efficiency", 0.8) / units
    )
    traffic = target["l2_bandwidth"] / units
    area, edge = schedule.rows * schedule.columns, schedule.rows + schedule.columns
    # Narrow instructions do not fill the tensor cores, and short steps wait at barriers more often.
    filled = min(1.0, schedule.rows / 64) * min(1.0, schedule.columns / 64)
    once = max(2 * area / (flops * filled), edge * present.element_bytes / traffic) * (1 + 4 / schedule.inner)
    programs = (present.outputs or _OUTPUTS) / area
    resident = max(1.0, min(2.0, 64 * 1024 / (area * 4)))
    waves = math.ceil(programs / units / resident) * resident if programs > units else 1.0
    return once * waves, -schedule.inner
