"""Scale the rows of a product after it instead of the rows of its first operand before it, where that is wider."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.nki.elementwise import (
    ScalarSteps,
    destination_type,
    keeps_precision,
    scalar_steps,
)
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement, root_name


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for instruction in kernel.instructions:
        scaled = scalar_steps(kernel, instruction)
        if scaled is not None and _scales_rows(kernel, scaled):
            rewrite = (_in_place if kernel.dialect.mutates else _afterwards)(kernel, scaled)
            if rewrite is not None:
                yield rewrite


def _scales_rows(kernel: NkiKernel, scaled: ScalarSteps) -> bool:
    """Return whether the instruction multiplies or divides a tile by a column, and binds a variable."""
    statement, (step, *more) = scaled.instruction.statement, scaled.steps
    return (
        statement is not None
        and isinstance(statement.target, cst.Name)
        and isinstance(scaled.data, cst.Name)
        and not more
        and step.op in ("multiply", "divide")
        and not (step.reverse and step.op == "divide")
        and kind(kernel, scaled.data) == "tile"
        and kind(kernel, step.operand) == "column"
        and scaled.instruction.get("mask") is None
    )


def _afterwards(kernel: NkiKernel, scaled: ScalarSteps) -> Rewrite | None:
    flow, source, instruction = kernel.flow, kernel.source, scaled.instruction
    assert instruction.statement is not None
    uses = flow.uses_after(instruction.statement)
    sums = {_sum_of(kernel, use) for use in uses or ()}
    if not uses or len(sums) != 1 or (sum_name := sums.pop()) is None:
        return None
    copy = _copied(kernel, sum_name, instruction.statement)
    if copy is None or copy.statement is None or not keeps_precision(kernel, instruction, copy):
        return None
    (step,), data = scaled.steps, source.code(scaled.data)
    if not flow.unchanged(instruction.statement, copy.statement, flow.variables(instruction.call)):
        return None
    text = _scaling(
        kernel, instruction, sum_name, step.op, source.code(step.operand), kernel.code(copy.get("dtype"))
    )
    if text is None:
        return None
    edits = [source.replace_with_parentheses(copy.call, text), *kernel.without(instruction)]
    edits += [source.replace(use, data) for use in uses]
    line = source.line(instruction.call)
    return Rewrite(tuple(edits), f"Do the {step.op} of line {line} on {sum_name}, after the product.")


def _sum_of(kernel: NkiKernel, use: cst.Name) -> str | None:
    """Return the variable that a product with ``use`` on its left is assigned or added to; None for any other
    use."""
    source, operand = kernel.source, _operand(kernel, use)
    call = next((p for p in source.parents(use) if isinstance(p, cst.Call)), None)
    product = None if call is None else kernel.instruction(call)
    if product is None or product.path != f"{NL}.matmul" or product["x"] is not operand:
        return None
    statement = kernel.flow.statement_of(use)
    if set(product.args) != {"x", "y"} or statement is None:
        return None
    target = _target(statement, product.call)
    return None if target is None else root_name(target)


def _operand(kernel: NkiKernel, use: cst.Name) -> cst.BaseExpression:
    """``use`` or the part of it that is read."""
    parent = kernel.source.parent(use)
    return parent if isinstance(parent, cst.Subscript) and parent.value is use else use


def _target(statement: Statement, product: cst.CSTNode) -> cst.BaseExpression | None:
    """Return the target that ``product`` alone is assigned or added to."""
    if statement.value is product and statement.target is not None:
        return statement.target
    body = statement.node.body if isinstance(statement.node, cst.SimpleStatementLine) else ()
    only = body[0] if len(body) == 1 else None
    adds = (
        isinstance(only, cst.AugAssign) and isinstance(only.operator, cst.AddAssign) and only.value is product
    )
    return only.target if adds and isinstance(only, cst.AugAssign) else None


def _copied(kernel: NkiKernel, name: str, scaled: Statement) -> NkiCall | None:
    """Return the copy that alone reads the sum ``name``, in the block of ``scaled``, if all that is added to
    it is scaled."""
    flow = kernel.flow
    allocation, reader = flow.allocation(name), None
    for occurrence in flow.occurrences(name):
        statement = flow.statement_of(occurrence)
        copy = next((i for i in kernel.of("nl.copy", "nisa.tensor_copy") if i.statement is statement), None)
        if copy is not None and copy["src"] is occurrence and reader is None:
            reader = copy
        elif statement is None or (
            statement is not allocation and not _adds_scaled(kernel, statement, scaled)
        ):
            return None
    if reader is None or reader.statement is None or reader.statement.block is not scaled.block:
        return None
    inside = allocation is None or allocation.block is scaled.block
    plain = not set(reader.args) - {"src", "dtype"}
    return reader if inside and plain and flow.sharing([name]) == {name} else None


def _adds_scaled(kernel: NkiKernel, statement: Statement, scaled: Statement) -> bool:
    uses = kernel.flow.uses_after(scaled) or []
    return any(kernel.flow.statement_of(use) is statement for use in uses)


def _scaling(
    kernel: NkiKernel, before: NkiCall, data: str, op: str, column: str, dtype: str | None
) -> str | None:
    if op == "divide":
        return kernel.spell("nl.divide", data, column, dtype=dtype)
    multiply = kernel.spelled(f"{NL}.multiply")
    if multiply is None:
        return None
    engine = kernel.code(before.get("engine"))
    return kernel.spell("nisa.tensor_scalar", data, multiply, column, dtype=dtype, engine=engine)


def _in_place(kernel: NkiKernel, scaled: ScalarSteps) -> Rewrite | None:
    """Today's dialect: the scaled tile is transposed part by part, each part copied out of PSUM and multiplied."""
    flow, source, instruction = kernel.flow, kernel.source, scaled.instruction
    statement = instruction.statement
    uses = flow.uses_after(statement) if statement is not None else None
    if not uses or statement is None or scaled.steps[0].op != "multiply":
        return None
    sums = {_product_of(kernel, use) for use in uses}
    if len(sums) != 1 or (total := sums.pop()) is None:
        return None
    readers = [i for i in kernel.instructions if total in _read_names(kernel, i)]
    allocation = flow.allocation(total)
    writers = [s for s in flow.simple() if total in s.stores]
    products = [i for i in kernel.instructions if i.path == f"{NISA}.nc_matmul"]
    fed = [i for i in products if i.destination is not None and root_name(i.destination) == total]
    if len(readers) != 1 or allocation is None or allocation.block is not statement.block:
        return None
    (copy,) = readers
    if len(writers) != len(fed) or len(fed) != len(uses) or copy.path != f"{NISA}.tensor_copy":
        return None
    if copy.statement is None or copy.statement.block is not statement.block or copy.args.keys() != {"src"}:
        return None
    if not isinstance(copy["src"], cst.Name) or not isinstance(scaled.data, cst.Name):
        return None
    if not flow.unchanged(statement, copy.statement, flow.variables(instruction.call)):
        return None
    source_allocation = flow.allocation(scaled.data.value)
    fresh = (
        kernel.instruction(source_allocation.value)
        if source_allocation is not None and source_allocation.value is not None
        else None
    )
    stated, dtype = fresh.get("dtype") if fresh else None, destination_type(kernel, instruction)
    words = [kernel.spelled(f"{NL}.{w}") for w in ("multiply", "float32")]
    column = source.code(scaled.steps[0].operand)
    engine = kernel.code(instruction.get("engine"))
    text = kernel.respelled(copy, "nisa.tensor_scalar", total, words[0] or "", column, engine=engine)
    if text is None or None in words or stated is None or dtype is None:
        return None
    edits = [source.replace_with_parentheses(copy.call, text), *kernel.without(instruction)]
    edits += [source.replace(use, scaled.data.value) for use in uses]
    if source.code(stated) != dtype:
        edits.append(source.replace(stated, dtype))  # TensorE transposes without a change of type
    line = source.line(instruction.call)
    return Rewrite(tuple(edits), f"Do the multiply of line {line} on {total}, after the product.")


def _product_of(kernel: NkiKernel, use: cst.Name) -> str | None:
    """Return the sum that products with the transpose of ``use`` on the left are added to; None for another use."""
    transpose = _reading(kernel, use, "nc_transpose", "data")
    copy = _only_read(kernel, transpose, "tensor_copy", "src")
    product = _only_read(kernel, copy, "nc_matmul", "stationary")
    return None if product is None or product.destination is None else root_name(product.destination)


def _reading(kernel: NkiKernel, use: cst.Name, function: str, operand: str) -> NkiCall | None:
    """Return the instruction ``function`` that reads ``use``, or a part of it, as ``operand``."""
    statement, read = kernel.flow.statement_of(use), _operand(kernel, use)
    reader = next((i for i in kernel.instructions if i.statement is statement), None)
    if reader is None or reader.path != f"{NISA}.{function}" or reader.get(operand) is not read:
        return None
    return reader


def _only_read(kernel: NkiKernel, maker: NkiCall | None, function: str, operand: str) -> NkiCall | None:
    """Return the instruction ``function`` that alone reads what ``maker`` writes."""
    if maker is None or maker.statement is None:
        return None
    readers = kernel.flow.readers(maker.statement)
    name = readers[0] if readers and len(readers) == 1 else None
    return _reading(kernel, name, function, operand) if isinstance(name, cst.Name) else None


def _read_names(kernel: NkiKernel, instruction: NkiCall) -> set[str]:
    return {name for value in instruction.args.values() for name in kernel.flow.variables(value)}
