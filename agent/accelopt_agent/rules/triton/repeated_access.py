"""Read what a program has loaded or stored before from its registers, and leave out stores that are overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.storage import apart
from accelopt_agent.rules.analysis.triton.values import Evaluation, Value, load_arguments, root


@dataclass(frozen=True)
class _Store:
    """``tl.store(pointer, value, mask)`` as a statement of its own.

    ``base`` is the argument it stores through.
    """

    statement: Statement
    call: cst.Call
    pointer: Value
    value: cst.BaseExpression
    mask: Value | None
    base: str


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    never_overlap = apart(kernel)
    values = Evaluation(kernel, never_overlap)
    values.walk(kernel.subject.function.body.body)
    stores = _stores(kernel, values)
    edits: list[ByteEdit] = []
    held_loads: dict[cst.Call, str] = {}
    variables: dict[_Store, str] = {}
    for call in kernel.calls("load"):
        name = _still_held(kernel, values, call) or _just_stored(
            kernel, values, call=call, stores=stores, variables=variables
        )
        if name is not None:
            held_loads[call] = name
            edits += _instead(kernel, values, call, name)
    gone = [s for s in stores if _overwritten(kernel, values, store=s, stores=stores, held_loads=held_loads)]
    source = kernel.source
    edits += [source.without(s.statement.node) for s in gone if s not in variables]
    for store, name in variables.items():
        line = f"{name} = {source.code(store.value)}"
        if store in gone:
            edits.append(source.replace(store.statement.node, line))
        else:
            edits += [source.before(store.statement.node, line), source.replace(store.value, name)]
    what = [
        f"read {_listed(kernel, held_loads)} from registers" if held_loads else "",
        f"store {', '.join(dict.fromkeys(s.base for s in gone))} once" if gone else "",
    ]
    if edits:
        summary = " and ".join(w for w in what if w)
        yield Rewrite(
            tuple(edits), f"{summary[0].upper()}{summary[1:]}, instead of the same addresses again."
        )


def _listed(kernel: TritonKernel, held_loads: dict[cst.Call, str]) -> str:
    targets = [s.target_name for c in held_loads if (s := kernel.flow.statement_of(c)) is not None]
    return ", ".join(dict.fromkeys(t or "a value" for t in targets))


def _still_held(kernel: TritonKernel, values: Evaluation, call: cst.Call) -> str | None:
    """Return the variable that holds what the load gives, where it stands."""
    statement, value = kernel.flow.statement_of(call), values.of(call)
    if statement is None or value is None or value.op != "load" or _is_volatile(call):
        return None
    held = values.before.get(statement.node, {})
    return next((name for name, content in held.items() if content is value), None)


def _just_stored(
    kernel: TritonKernel,
    values: Evaluation,
    call: cst.Call,
    stores: list[_Store],
    variables: dict[_Store, str],
) -> str | None:
    """Return what was stored to the load's address before, in the type of the tensor. A store of an
    expression gets a variable for it, in ``variables``."""
    statement = kernel.flow.statement_of(call)
    if statement is None or _is_volatile(call):
        return None
    pointer, mask, other = _arguments(values, call)
    before = [s for s in stores if s.statement.block is statement.block and s.pointer is pointer]
    before = [s for s in before if kernel.source.start(s.call) < kernel.source.start(call)]
    if not before or pointer is None or before[-1].mask is not mask:
        return None
    store = before[-1]
    written = [s for s in stores if s not in before and s.base == store.base]
    between = kernel.flow.between(store.statement, statement)
    if any(s.statement in between for s in written) or any(_may_write(kernel, s) for s in between):
        return None
    held, stored = values.before.get(statement.node, {}), values.of(store.value)
    same_rest = stored is not None and stored.op == "load" and stored.args[1:3] == (mask, other)
    if mask is not None and other is not None and not same_rest:
        return None
    if isinstance(store.value, cst.Name):
        name = store.value.value if held.get(store.value.value) is stored else None
    else:
        name = variables.get(store) or _fresh_name(kernel, len(variables))
        variables[store] = name
    return None if name is None else f"{name}.to({store.base}.dtype.element_ty)"


def _fresh_name(kernel: TritonKernel, count: int) -> str:
    """Return a variable for a stored value, the first that is free after ``count`` others."""
    names_in_use = {*kernel.parameters, *(n.value for n in kernel.flow.names)}
    free = [n for n in ("stored", *(f"stored_{i}" for i in range(2, 99))) if n not in names_in_use]
    return free[count]


def _may_write(kernel: TritonKernel, statement: Statement) -> bool:
    """Return whether a statement other than a plain load or store may change memory."""
    calls = kernel.source.walk(statement.node, cst.Call)
    return any(
        kernel.names.foreign(c.func, ("triton", "math"))
        or (kernel.names.path(c.func) or "").rpartition(".")[2].startswith("atomic_")
        for c in calls
    )


def _instead(kernel: TritonKernel, values: Evaluation, call: cst.Call, name: str) -> list[ByteEdit]:
    """``name`` in place of the load. Of a variable that only held it, in place of each use."""
    source, statement = kernel.source, kernel.flow.statement_of(call)
    assert statement is not None
    if statement.value is call and statement.target_name == name:
        return [source.without(statement.node)]
    uses = kernel.flow.uses_after(statement) if statement.value is call else None
    if uses is None or not name.isidentifier():
        return [source.replace(call, name)]
    held = values.of(call)
    for use in uses:
        there = kernel.flow.statement_of(use)
        if there is None or values.before.get(there.node, {}).get(name) is not held:
            return [source.replace(call, name)]
    return [source.without(statement.node), *(source.replace(use, name) for use in uses)]


def _stores(kernel: TritonKernel, values: Evaluation) -> list[_Store]:
    stores = []
    for call in kernel.calls("store"):
        statement = kernel.flow.statement_of(call)
        if statement is None or len(call.args) < 2 or call.args[1].keyword is not None:
            continue
        keywords = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
        mask = keywords.get(
            "mask", call.args[2].value if len(call.args) > 2 and call.args[2].keyword is None else None
        )
        pointer = values.of(call.args[0].value)
        base = root(values, pointer)
        if pointer is None or base is None or not isinstance(kernel.source.parent(call), cst.Expr):
            continue
        mask_value = values.of(mask) if mask is not None else None
        stores.append(
            _Store(statement, call, pointer=pointer, value=call.args[1].value, mask=mask_value, base=base)
        )
    return stores


def _overwritten(
    kernel: TritonKernel,
    values: Evaluation,
    store: _Store,
    stores: list[_Store],
    held_loads: dict[cst.Call, str],
) -> bool:
    """Return whether a later store in the block writes the same elements, and nothing reads them in between."""
    never_overlap = apart(kernel)
    for later in stores:
        same = later.pointer is store.pointer and later.mask is store.mask
        if not same or later.statement.block is not store.statement.block or later is store:
            continue
        start, end = kernel.source.start(store.call), kernel.source.start(later.call)
        if end < start:
            continue
        between = kernel.flow.between(store.statement, later.statement)
        reads = [
            c for c in kernel.calls("load") if start < kernel.source.start(c) < end and c not in held_loads
        ]
        bases = [root(values, _arguments(values, c)[0]) for c in reads]
        if any(_may_write(kernel, s) or not s.simple for s in between):
            return False
        return all(
            base is not None and base != store.base and never_overlap(base, store.base) for base in bases
        )
    return False


def _arguments(values: Evaluation, call: cst.Call) -> tuple[Value | None, ...]:
    def value(node: cst.CSTNode) -> Value:
        content = values.of(node)
        return content if content is not None else values.fresh("argument")

    return load_arguments(call, value)


def _is_volatile(call: cst.Call) -> bool:
    return any(a.keyword is not None and a.keyword.value == "volatile" for a in call.args)
