"""Tells which dimension of a kernel's tiles each block size measures.

One constexpr or number often stands for several dimensions (a square tile), and one dimension is often spelled by
several. Dimensions are the same where ``tl.dot`` contracts them or where tiles are combined element by element.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import RuleContext
from accelopt_agent.rules.analysis.triton.tile_flow import ONE, SizeNode, TileFlow


@dataclass
class TileDimension:
    """A dimension of the kernel's tiles.

    ``sizes`` are the places in the kernel that hold its block size, ``tiles`` those of them that size a tile; ``axes``
    are the grid axes whose program takes one block of it, ``loops`` those that go over its blocks, ``bounds`` the
    arguments that its offsets are compared with. ``guarded`` tells that no access reaches past its end, whatever the
    block size, ``looped`` that all accesses lie in such loops.
    """

    sizes: list[SizeNode] = field(default_factory=list)
    tiles: list[SizeNode] = field(default_factory=list)
    axes: set[int] = field(default_factory=set)
    loops: set[cst.For] = field(default_factory=set)
    bounds: set[str] = field(default_factory=set)
    guarded: bool = True
    looped: bool = True

    @property
    def names(self) -> set[str]:
        return {n.value for n in self.tiles if isinstance(n, cst.Name)}


@dataclass(frozen=True)
class Product:
    """A ``tl.dot`` of a tile of ``rows`` by ``inner`` with one of ``inner`` by ``columns``."""

    call: cst.Call
    rows: TileDimension
    columns: TileDimension
    inner: TileDimension


class TileDimensions:
    """The dimensions of one kernel and its products. Sizes that belong to no dimension are in ``loose``."""

    def __init__(self, subject: RuleContext) -> None:
        self._flow = TileFlow(subject)
        self.kernel = self._flow.kernel
        self._join_pointer_steps()
        self._join_by_name()
        self._collect()

    def _join_pointer_steps(self) -> None:
        """A loop in blocks whose variable meets no lanes, around products: it goes over what they contract."""
        flow, find = self._flow, self._flow.groups.find
        for loop, steps in flow.steps.items():
            inside = [d for c, d in flow.dots.items() if next(self._loops_around(c), None) is loop]
            inner = {find(d[2]) for d in inside}
            dimensions = {find(s) for s in steps}
            if steps and len(inner) == 1 and not any(loop in loops for loops in flow.loops.values()):
                (contracted,) = inner
                if all(not flow.axes.get(k) for k in dimensions):
                    for step in steps:
                        flow.groups.join(step, contracted)
                    flow.loops[find(contracted)].add(loop)

    def _loops_around(self, node: cst.CSTNode) -> Iterator[cst.For]:
        return (p for p in self.kernel.source.parents(node) if isinstance(p, cst.For))

    def _join_by_name(self) -> None:
        """A name whose tiles all lie in one dimension means that dimension wherever else it stands."""
        flow, find = self._flow, self._flow.groups.find
        lanes = {find(d) for dims in flow.made.values() for d in dims}
        by_name: dict[str, list[int]] = defaultdict(list)
        for node, number in flow.number_of.items():
            if isinstance(node, cst.Name):
                by_name[node.value].append(number)
        for numbers in by_name.values():
            groups = {find(n) for n in numbers} & lanes
            if len(groups) == 1:
                for number in numbers:
                    flow.groups.join(number, next(iter(groups)))

    def _collect(self) -> None:
        flow, find = self._flow, self._flow.groups.find
        lanes = {find(d) for dims in flow.made.values() for d in dims}
        wrapped = {find(d) for d in flow.wrapped}
        by_group: dict[int, TileDimension] = defaultdict(TileDimension)
        self.loose: list[SizeNode] = []
        for node, number in flow.number_of.items():
            if find(number) in lanes:
                by_group[find(number)].sizes.append(node)
                by_group[find(number)].tiles += [node] if node in flow.tiles else []
            else:
                self.loose.append(node)
        for group, axes in flow.axes.items():
            by_group[find(group)].axes |= axes
        for group, loops in flow.loops.items():
            by_group[find(group)].loops |= loops
            for loop in loops:
                by_group[find(group)].bounds |= flow.arguments(loop.iter)
        for group, bounds in flow.bounds.items():
            by_group[find(group)].bounds |= bounds
        for call, (dims, masked) in flow.accesses.items():
            groups = {find(d) for d in dims if d != ONE}
            for group in groups - {find(d) for d in masked} - wrapped:
                by_group[group].guarded = False
            for group in groups:
                over = by_group[group].loops
                by_group[group].looped &= any(loop in over for loop in self._loops_around(call))
        self.products = [
            Product(call, *(by_group[find(d)] for d in dimensions)) for call, dimensions in flow.dots.items()
        ]
        self.dimensions = [d for d in by_group.values() if d.tiles]

    def of(self, name: str) -> list[TileDimension]:
        """Return the dimensions that the constexpr ``name`` measures."""
        return [d for d in self.dimensions if name in d.names]
