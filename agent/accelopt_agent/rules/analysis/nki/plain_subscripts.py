"""Writes out the indices that a kernel keeps in variables, so that every rule sees them: ``x[block]`` after
``block = nl.ds(i * 128, 128), nl.ds(j * 512, 512)`` is ``x[nl.ds(i * 128, 128), nl.ds(j * 512, 512)]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit, apply_edits
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.parsed_source import ParsedSource
from accelopt_agent.rules.analysis.rule_context import RuleContext
from accelopt_agent.rules.analysis.statement import Statement

#: Functions that give a range of positions, as one index.
_RANGES = frozenset({f"{NL}.ds", "slice"})

#: What an index may call: results that depend on the arguments only.
_PURE = _RANGES | {f"{NL}.arange", "min", "max", "len", "int"}

#: Stands on a line that is left empty, until a rewrite is made: so every line stays the line that it was.
_GONE = "\f"


def plain_subscripts(subject: RuleContext) -> ParsedSource | None:
    """Return the source with the indices that its kernel gives names to written where they are used: tuples, ranges,
    and what a tuple of names is bound to. None where it has none.

    A variable that is used in no other way goes. Every line stays the line that it was; ``without_gaps`` takes away
    those that are empty now.
    """
    kernel = subject.analysis(NkiKernel)
    edits = [edit for s in kernel.flow.simple() for edit in _written_out(kernel, s)]
    if not edits or _GONE in subject.source.text:
        return None
    return ParsedSource(apply_edits(subject.source.data, edits, subject.source.newline).decode())


def without_gaps(text: str) -> str:
    """Return what a rewrite made of ``plain_subscripts``, without the lines where variables were."""
    return re.sub(rf"^[ \t]*{_GONE}[ \t]*\r?\n", "", text, flags=re.MULTILINE).replace(_GONE, "")


def _written_out(kernel: NkiKernel, bound: Statement) -> Iterator[ByteEdit]:
    """Yield the edits that write the indices, which ``bound`` gives names, where they are used."""
    flow, source = kernel.flow, kernel.source
    values = _indices(kernel, bound)
    if not values or bound.assign is None:
        return
    block = [s for s in flow.statements if s.block is bound.block]
    later = block[block.index(bound) + 1 :]
    after = {s.node for s in later}
    used = {v for value in values.values() for v in flow.variables(value)} | values.keys()
    if any(used & s.writes for s in later):
        return
    edits, gone = [], True
    for name, value in values.items():
        for use in flow.occurrences(name):
            if bound.node in source.parents(use):
                continue
            text = _in_place_of(source, use, value) if after & set(source.parents(use)) else None
            gone = gone and text is not None
            edits += [source.replace(use, text)] if text is not None else []
    yield from edits
    if edits and gone:
        at, end = source.start(bound.assign), source.end(bound.assign)
        yield ByteEdit(
            source.line_start(at), end, "\n".join([_GONE] * (source.data.count(b"\n", at, end) + 1))
        )


def _indices(kernel: NkiKernel, bound: Statement) -> dict[str, cst.BaseExpression]:
    """Return the names that a statement binds, with their values, if all are indices that rules do not see."""
    target, value = bound.bound, bound.value
    pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]] = []
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        if len(target.elements) == len(value.elements) and bound.loops:
            pairs = [(t.value, v.value) for t, v in zip(target.elements, value.elements, strict=True)]
    elif isinstance(target, cst.Name) and value is not None:
        called = (
            kernel.path(value.func) or kernel.source.code(value.func) if isinstance(value, cst.Call) else ""
        )
        pairs = [(target, value)] if called in _RANGES or isinstance(value, cst.Tuple) else []
    indices = {t.value: v for t, v in pairs if isinstance(t, cst.Name)}
    once = all(len(kernel.flow.binding(name)) == 1 for name in indices)
    whole = len(indices) == len(pairs) and once and all(_is_index(kernel, v) for v in indices.values())
    return indices if whole else {}


def _in_place_of(source: ParsedSource, use: cst.Name, value: cst.BaseExpression) -> str | None:
    """Return what to write for a use of the variable in a subscript; None for any other use."""
    index = source.parent(use)
    element = source.parent(index) if isinstance(index, cst.Index) and index.star is None else None
    subscript = source.parent(element) if isinstance(element, cst.SubscriptElement) else None
    if isinstance(value, cst.Tuple):
        if not isinstance(subscript, cst.Subscript) or len(subscript.slice) != 1:
            return None
        return ", ".join(_as_index(source, e.value) for e in value.elements)
    if isinstance(subscript, cst.Subscript):
        return _as_index(source, value)
    code, inside = source.code(value), any(isinstance(p, cst.SubscriptElement) for p in source.parents(use))
    if not inside or isinstance(value, cst.Call):
        return None
    return code if isinstance(value, (cst.Name, cst.Integer)) else f"({code})"


def _is_index(kernel: NkiKernel, node: cst.BaseExpression) -> bool:
    """Return whether an expression depends on its variables only, and means the same wherever it stands."""
    calls = [kernel.path(c.func) or kernel.source.code(c.func) for c in kernel.source.walk(node, cst.Call)]
    odd = (cst.Lambda, cst.NamedExpr, cst.Await, cst.Yield, cst.BaseComp, cst.StarredElement)
    return all(c in _PURE for c in calls) and not any(isinstance(n, odd) for n in kernel.source.below(node))


def _as_index(source: ParsedSource, node: cst.BaseExpression) -> str:
    """Return ``a:b`` for ``slice(a, b)``, which means the same in brackets."""
    if (
        not isinstance(node, cst.Call)
        or source.code(node.func) != "slice"
        or any(a.keyword for a in node.args)
    ):
        return source.code(node)
    ends = ["" if source.code(a.value) == "None" else source.code(a.value) for a in node.args]
    return ":".join(["", *ends] if len(ends) == 1 else ends)
