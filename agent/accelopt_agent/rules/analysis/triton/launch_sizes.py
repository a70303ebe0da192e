"""Follows block sizes from a kernel to its launch: where each gets its value, and what of the grid counts in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import RuleContext
from accelopt_agent.rules.analysis.triton.block_size import grid_axes, passed
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.tile_dimensions import TileDimension


@dataclass(frozen=True)
class SizeValue:
    """``node`` is the number that a launch passes for a block size, ``variable`` the one that holds it, if any."""

    value: int
    node: cst.Integer
    variable: str | None = None


@dataclass(frozen=True)
class Resize:
    """A block size from ``old`` to ``new``.

    ``text`` is what the launch says for it.

    ``name`` is the kernel's argument, or None where the number stands in the kernel itself. ``axes`` are the grid axes
    that count its blocks.
    """

    name: str | None
    old: int
    new: int
    text: str
    axes: frozenset[int]
    bounds: frozenset[str] = frozenset()


class LaunchSizes:
    """The block sizes at one launch of a kernel."""

    def __init__(self, kernel: TritonKernel, launch: KernelLaunch) -> None:
        self.kernel, self.launch, self._source = kernel, launch, kernel.source

    def value(self, name: str) -> SizeValue | None:
        """Return the number that the launch passes for ``name``, also through a variable that is assigned
        once."""
        argument = self.launch.arguments.get(name)
        node = passed(self.kernel, self.launch, name) if argument is not None else None
        if node is None:
            return None
        return SizeValue(int(node.value, 0), node, argument.value if isinstance(argument, cst.Name) else None)

    def edits(self, resizes: list[Resize]) -> list[ByteEdit] | None:
        """Return the edits of the launch and of what it is made from; None where the grid cannot be
        followed."""
        edits: list[ByteEdit] = []
        by_name = {r.name: r for r in resizes if r.name is not None}
        held: dict[str, list[Resize]] = {}
        for name, resize in by_name.items():
            value = self.value(name)
            if value is None or value.value != resize.old:
                return None
            if value.variable is None:
                edits.append(self._source.replace(value.node, resize.text))
            else:
                held.setdefault(value.variable, []).append(resize)
        for variable, sharing in held.items():
            changed = self._variable_edits(variable, sharing)
            if changed is None:
                return None
            edits += changed
        counted = self._grid_edits(resizes, set(held))
        return None if counted is None else [*edits, *counted]

    def _variable_edits(self, variable: str, sharing: list[Resize]) -> list[ByteEdit] | None:
        """Give a variable its new value.

        Arguments that it stood for too and that change otherwise get numbers.
        """
        counted = [r for r in sharing if r.axes] or sharing
        texts = {r.text for r in counted}
        by_name = {r.name: r for r in sharing if r.name is not None}
        value = self.value(next(iter(by_name)))
        if len(texts) != 1 or value is None:
            return None
        edits = [self._source.replace(value.node, texts.pop())]
        for name, argument in self.launch.arguments.items():
            if isinstance(argument, cst.Name) and argument.value == variable:
                resize = by_name.get(name)
                if resize is None:
                    edits.append(self._source.replace(argument, value.node.value))
                elif resize not in counted:
                    edits.append(self._source.replace(argument, resize.text))
        return edits

    # The grid

    def _grid_edits(self, resizes: list[Resize], variables: set[str]) -> list[ByteEdit] | None:
        axes = grid_axes(self.kernel, self.launch)
        if axes is None:
            return None
        expressions, edits = axes[0], list[ByteEdit]()
        for axis in sorted({a for r in resizes for a in r.axes}):
            if axis >= len(expressions):
                return None
            counted = [r for r in resizes if axis in r.axes]
            changed = self._axis_edits(expressions[axis], counted, variables)
            if changed is None:
                return None
            edits += [e for e in changed if e not in edits]
        return edits

    def _axis_edits(
        self, expression: cst.BaseExpression, counted: list[Resize], variables: set[str]
    ) -> list[ByteEdit] | None:
        nodes = list(self._expanded(expression))
        numbers = [n for n in nodes if isinstance(n, cst.Integer)]
        names = {n.value for n in nodes if isinstance(n, cst.Name)}
        keys = {self._source.code(n).strip("\"'") for n in nodes if isinstance(n, cst.SimpleString)}
        edits: list[ByteEdit] = []
        following = [r for r in counted if r.name in keys or self._variable_of(r) in names & variables]
        literal = [r for r in counted if r not in following]
        resizes: list[Resize] = []
        for number in numbers:
            resize = self._counted_by(number, [r for r in literal if r not in resizes] or literal)
            if resize is None:
                continue
            resizes.append(resize)
            text = resize.text
            if int(number.value, 0) != resize.old:
                text = str(resize.new - 1) if text.isdigit() else f"{text} - 1"
            if self._source.code(number) != text:
                edits.append(self._source.replace(number, text))
        rest = [r for r in literal if r not in resizes and r.new != r.old]
        return None if any(r.text not in {t.text for t in resizes} for r in rest) else edits

    def _counted_by(self, number: cst.Integer, resizes: list[Resize]) -> Resize | None:
        """Return the block size that a number in the grid stands for: one of this value, and of the size that
        it divides.

        Where two fit that divide the same size, either does: the grid counts the blocks of both.
        """
        value = int(number.value, 0)
        fitting = [r for r in resizes if value in (r.old, r.old - 1)]
        dividing = [r for r in fitting if self._divides(number, r)]
        return next(iter(dividing or fitting), None)

    def _variable_of(self, resize: Resize) -> str | None:
        value = self.value(resize.name) if resize.name is not None else None
        return value.variable if value is not None else None

    def _expanded(self, expression: cst.CSTNode, depth: int = 0) -> Iterator[cst.CSTNode]:
        """Yield the nodes of an expression and of the variables in it that the launching function assigns
        once."""
        for node in self._source.below(expression):
            yield node
            if isinstance(node, cst.Name) and depth < 4:
                assigned = self.kernel.assigned(self.launch, node.value)
                if assigned is not None and not isinstance(assigned.value, cst.Integer):
                    yield from self._expanded(assigned.value, depth + 1)

    def _divides(self, number: cst.Integer, resize: Resize) -> bool:
        """Return whether a number of the grid divides a size that the kernel bounds this dimension by."""
        dividend = self.dividend(number)
        sizes = [self.launch.arguments[b] for b in resize.bounds if b in self.launch.arguments]
        return dividend is not None and any(self._source.same(dividend, g) for g in sizes)

    def dividend(self, number: cst.CSTNode) -> cst.BaseExpression | None:
        """Return ``M`` in ``cdiv(M, 32)``, ``M // 32`` and ``(M + 31) // 32``."""
        parent = self._source.parent(number)
        if isinstance(parent, cst.Arg):
            call = self._source.parent(parent)
            if isinstance(call, cst.Call) and len(call.args) == 2 and call.args[1] is parent:
                return call.args[0].value
        while isinstance(parent, cst.BinaryOperation):
            if isinstance(parent.operator, cst.FloorDivide):
                left = parent.left
                while isinstance(left, cst.BinaryOperation):
                    left = left.left
                return left
            parent = self._source.parent(parent)
        return None


def axes_of(dimensions: list[TileDimension]) -> frozenset[int]:
    return frozenset(a for d in dimensions for a in d.axes)


def bounds_of(dimensions: list[TileDimension]) -> frozenset[str]:
    return frozenset(b for d in dimensions for b in d.bounds)


def options_edits(kernel: TritonKernel, call: cst.Call, options: Mapping[str, str]) -> list[ByteEdit]:
    """Set keyword arguments of a launch: change those that are there, add the others behind the last."""
    edits, added = [], []
    for name, text in options.items():
        present = next((a for a in call.args if a.keyword is not None and a.keyword.value == name), None)
        if present is None:
            added.append(f"{name}={text}")
        elif kernel.source.code(present.value) != text:
            edits.append(kernel.source.replace(present.value, text))
    last = call.args[-1]
    return [
        *edits,
        *(kernel.source.added(kernel.source.start(last), kernel.source.end(last), added) if added else []),
    ]


def option(launch: KernelLaunch, name: str, default: int) -> int | None:
    """Return the number of a launch option; None where it is computed."""
    keyword = launch.keyword(name)
    return default if keyword is None else integer(keyword.value)


def measured_setting(subject: RuleContext, name: str) -> int | None:
    """Return what the profiled launch had for a constexpr or an option."""
    written = subject.measurement.configuration if subject.measurement is not None else ""
    number = re.search(rf"(?:^|, ){re.escape(name)}=(\d+)(?:,|$)", written)
    return int(number[1]) if number is not None else None
