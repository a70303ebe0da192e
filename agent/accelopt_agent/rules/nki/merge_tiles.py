"""Do element-wise work on wider tiles: fewer instructions and longer transfers for the same elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable, trip_count, unwrapped
from accelopt_agent.rules.analysis.nki.elementwise import activation, pair, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import is_string

#: Elements per partition above which wider tiles gain nothing more (16 KiB of float32).
_WIDEST = 8192


@dataclass
class _Widening:
    """The edits that make each tile in a loop ``factor`` times as wide; ``tensors`` have a dimension for the loop."""

    factor: int
    whole: bool  # the factor is the trip count: the loop goes away
    edits: list[ByteEdit] = field(default_factory=list)
    tensors: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # name -> (position of the index, old width)


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for statement in kernel.flow.statements:
        loop = statement.node
        if not isinstance(loop, cst.For):
            continue
        count = trip_count(kernel.flow, loop)
        if count is None or count < 2:
            continue
        for factor in sorted({count, 4, 2}, reverse=True):
            if count % factor == 0:
                rewrite = _merged(kernel, loop, count, factor)
                if rewrite is not None:
                    yield rewrite


def _merged(kernel: NkiKernel, loop: cst.For, count: int, factor: int) -> Rewrite | None:
    source, variable = kernel.source, loop_variable(loop)
    widening = _Widening(factor, factor == count)
    body = [i for i in kernel.instructions if i.statement is not None and i.statement.block is loop.body]
    strings = [s for s in loop.body.body if is_string(s)]
    if variable is None or not body or len(body) + len(strings) != len(loop.body.body):
        return None
    if not all(_is_elementwise(kernel, i) for i in body):
        return None
    for occurrence in (n for n in kernel.flow.occurrences(variable) if n is not loop.target):
        if not _widen_index(kernel, widening, occurrence, variable):
            return None
    if not _widen_tensors(kernel, widening, loop) or not _all_widened(kernel, loop, variable):
        return None
    edits = widening.edits
    if widening.whole:
        header = unwrapped(source, loop)
        if not header:
            return None
        edits = [*edits, *header]
    else:
        assert isinstance(loop.iter, cst.Call)
        edits = [*edits, source.replace(loop.iter.args[0].value, str(count // factor))]
    merged = "one tile" if widening.whole else f"tiles {factor} times as wide"
    return Rewrite(tuple(edits), f"Do the {count} iterations over {variable} on {merged}.")


def _is_elementwise(kernel: NkiKernel, instruction: NkiCall) -> bool:
    if instruction.path in (
        f"{NL}.load",
        f"{NL}.store",
        f"{NL}.copy",
        f"{NISA}.tensor_copy",
        f"{NISA}.reciprocal",
    ):
        return True
    operation = (
        activation(kernel, instruction) or scalar_steps(kernel, instruction) or pair(kernel, instruction)
    )
    return operation is not None


def _width(kernel: NkiKernel, node: cst.BaseExpression) -> tuple[cst.Call, int] | None:
    """Return the one ``nl.arange(n)`` in an index expression, with n."""
    calls = [c for c in kernel.source.walk(node, cst.Call) if kernel.path(c.func) == f"{NL}.arange"]
    if len(calls) != 1 or len(calls[0].args) != 1:
        return None
    width = number(kernel.flow, calls[0].args[0].value)
    return (calls[0], width) if isinstance(width, int) else None


def _index(subscript: cst.Subscript, position: int) -> cst.BaseExpression | None:
    element = subscript.slice[position].slice
    return element.value if isinstance(element, cst.Index) else None


def _widen_index(kernel: NkiKernel, widening: _Widening, occurrence: cst.Name, variable: str) -> bool:
    """Widen the subscript that ``occurrence`` of the loop variable stands in.

    False when its form is not known.
    """
    subscript = next((p for p in kernel.source.parents(occurrence) if _is_tensor_subscript(kernel, p)), None)
    if not isinstance(subscript, cst.Subscript) or not isinstance(subscript.value, cst.Name):
        return False
    last = _index(subscript, -1)
    if last is None or (wide := _width(kernel, last)) is None or wide[1] * widening.factor > _WIDEST:
        return False
    arange, width = wide
    widening.edits.append(kernel.source.replace(arange.args[0].value, str(width * widening.factor)))
    for position in range(len(subscript.slice) - 1):
        if _index(subscript, position) is occurrence:
            name = subscript.value.value
            if widening.tensors.setdefault(name, (position, width)) != (position, width):
                return False
            if widening.whole:
                widening.edits.append(_without_element(kernel, subscript, position))
            return True
    return _widen_offset(kernel, widening, last=last, occurrence=occurrence, width=width)


def _is_tensor_subscript(kernel: NkiKernel, node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name)


def _without_element(kernel: NkiKernel, subscript: cst.Subscript, position: int) -> ByteEdit:
    source = kernel.source
    return ByteEdit(source.start(subscript.slice[position]), source.start(subscript.slice[position + 1]), "")


def _widen_offset(
    kernel: NkiKernel, widening: _Widening, last: cst.BaseExpression, occurrence: cst.Name, width: int
) -> bool:
    """``width * i + ... + arange(width)``: drop the term with the loop variable, or make its factor larger."""
    term = kernel.source.parent(occurrence)
    if not isinstance(term, cst.BinaryOperation) or not isinstance(term.operator, cst.Multiply):
        return False
    other = term.right if term.left is occurrence else term.left
    if number(kernel.flow, other) != width:
        return False
    node: cst.CSTNode = term
    while node is not last:
        above = kernel.source.parent(node)
        if not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, cst.Add):
            return False
        node = above
    if not widening.whole:
        widening.edits.append(kernel.source.replace(other, str(width * widening.factor)))
        return True
    addition = kernel.source.parent(term)
    if not isinstance(addition, cst.BinaryOperation):
        return False
    source = kernel.source
    if addition.left is term:
        widening.edits.append(ByteEdit(source.start(term), source.start(addition.right), ""))
    else:
        widening.edits.append(ByteEdit(source.end(addition.left), source.end(term), ""))
    return not (addition.lpar or term.lpar or addition.left.lpar or addition.right.lpar)


def _widen_tensors(kernel: NkiKernel, widening: _Widening, loop: cst.For) -> bool:
    """Widen the allocations of tensors with a dimension for the loop. They must be used in it only."""
    for name, (position, width) in widening.tensors.items():
        allocation = kernel.flow.allocation(name)
        instruction = kernel.instruction(allocation.value) if allocation and allocation.value else None
        shape = instruction.get("shape") if instruction else None
        if instruction is None or allocation is None or not isinstance(shape, cst.Tuple):
            return False
        if (kernel.code(instruction.get("buffer")) or "").rpartition(".")[2] == "psum":
            return False
        uses = [n for n in kernel.flow.occurrences(name) if n is not allocation.target]
        if any(loop not in kernel.source.parents(n) for n in uses):
            return False
        sizes = [number(kernel.flow, e.value) for e in shape.elements]
        count = trip_count(kernel.flow, loop)
        if count is None or position >= len(sizes) or sizes[position] != count or sizes[-1] != width:
            return False
        source, last = kernel.source, shape.elements[-1].value
        widening.edits.append(source.replace(last, str(width * widening.factor)))
        if widening.whole:
            start = source.start(shape.elements[position])
            widening.edits.append(ByteEdit(start, source.start(shape.elements[position + 1]), ""))
        else:
            widening.edits.append(
                source.replace(shape.elements[position].value, str(count // widening.factor))
            )
    return True


def _all_widened(kernel: NkiKernel, loop: cst.For, variable: str) -> bool:
    """Return whether every tile in the loop changes with the loop variable: one that does not would keep its old
    width."""
    for subscript in kernel.source.walk(loop.body, cst.Subscript):
        if not _is_tensor_subscript(kernel, subscript) or root_is_index(kernel, subscript):
            continue
        last = _index(subscript, -1)
        if last is None:
            return False
        if number(kernel.flow, last) is not None:
            continue  # a column
        if variable not in kernel.flow.variables(subscript):
            return False
    names = {n.value for n in kernel.source.walk(loop.body, cst.Name)} & set(kernel.index_variables)
    return not names


def root_is_index(kernel: NkiKernel, subscript: cst.Subscript) -> bool:
    """Return whether what is indexed is an index itself (``rows[:, None]``)."""
    return isinstance(subscript.value, cst.Name) and subscript.value.value in kernel.index_variables
