"""Use the hardware's base-2 exponential and fold log2(e) into a factor that is there already."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel

_LOG2_E = "1.4426950408889634"


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.spell("exp2") is None:
        return
    for exp in kernel.calls("exp"):
        if len(exp.args) == 1 and (factor := _factor(kernel, exp.args[0].value)) is not None:
            edits = (_renamed(kernel, exp), _scaled(kernel, factor))
            yield Rewrite(edits, "Compute the exponential base 2, with log2(e) folded into its factor.")
    rewrite = _scores(kernel)
    if rewrite is not None:
        yield rewrite


def _renamed(kernel: TritonKernel, exp: cst.Call) -> ByteEdit:
    return kernel.source.replace(exp.func, kernel.spell("exp2") or "")


def _scaled(kernel: TritonKernel, factor: cst.BaseExpression) -> ByteEdit:
    value = number(kernel.flow, factor)
    code = kernel.source.code(factor)
    if value is not None and not isinstance(factor, cst.Name):
        return kernel.source.replace(factor, repr(value * float(_LOG2_E)))
    return kernel.source.replace(factor, f"({code} * {_LOG2_E})")


def _factor(kernel: TritonKernel, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the number or scalar argument in ``x * factor``."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Multiply):
        return None
    for side in (node.right, node.left):
        if number(kernel.flow, side) is not None or _is_scalar(kernel, side):
            return side
    return None


def _is_scalar(kernel: TritonKernel, node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Name) or node.value not in kernel.parameters:
        return False
    return not any(node.value in s.writes for s in kernel.flow.statements)


def _scores(kernel: TritonKernel) -> Rewrite | None:
    """Attention scores: ``s = product * scale`` whose only use is in maxima and in exponentials of differences."""
    for statement in kernel.flow.simple():
        node = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        factor = None
        if isinstance(node, cst.Assign) and isinstance(statement.target, cst.Name):
            factor, name = _factor(kernel, node.value), statement.target.value
        elif isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.MultiplyAssign):
            name = kernel.source.code(node.target)
            scalar = number(kernel.flow, node.value) is not None or _is_scalar(kernel, node.value)
            factor = node.value if scalar else None
        if factor is None:
            continue
        exps = _all_exponentials(kernel, name)
        if exps:
            edits = (*(_renamed(kernel, exp) for exp in exps), _scaled(kernel, factor))
            return Rewrite(
                edits, f"Keep {name} in units of log2: one factor for all, and base-2 exponentials."
            )
    return None


def _all_exponentials(kernel: TritonKernel, name: str) -> list[cst.Call]:
    """Return every ``exp`` of the kernel, if all are of differences of logarithmic values that are used for
    nothing else."""
    logarithmic = {name}
    flow = kernel.flow
    while True:
        more = set()
        for statement in flow.simple():
            value = statement.value
            if isinstance(statement.target, cst.Name) and value is not None:
                is_maximum = kernel.is_call(value, "max", "maximum", "where")
                if is_maximum or isinstance(value, (cst.Name, cst.BinaryOperation)):
                    used = flow.variables(value) - _conditions(kernel, value)
                    difference = not isinstance(value, cst.BinaryOperation) or isinstance(
                        value.operator, cst.Subtract
                    )
                    if used & logarithmic and difference:
                        more.add(statement.target.value)
        if more <= logarithmic:
            break
        logarithmic |= more
    exps = kernel.calls("exp")
    allowed = {id(exp) for exp in exps}
    for occurrence in (n for n in flow.names if n.value in logarithmic):
        if not _stays_logarithmic(kernel, occurrence, logarithmic, allowed):
            return []
    in_exps = [exp for exp in exps if flow.variables(exp.args[0].value) & logarithmic]
    return exps if exps and len(in_exps) == len(exps) and not kernel.calls("log", "log2", "exp2") else []


def _conditions(kernel: TritonKernel, value: cst.BaseExpression) -> set[str]:
    if isinstance(value, cst.Call) and kernel.is_call(value, "where") and value.args:
        return kernel.flow.variables(value.args[0].value)
    return set()


def _stays_logarithmic(
    kernel: TritonKernel, occurrence: cst.Name, logarithmic: set[str], exps: set[int]
) -> bool:
    """Return whether this use only bounds, compares or subtracts, down to an exponential or another such value."""
    for above in kernel.source.parents(occurrence):
        if isinstance(above, cst.Call):
            if id(above) in exps:
                return True
            if not kernel.is_call(above, "max", "maximum", "where"):
                return False
        elif isinstance(above, cst.Comparison):
            if not kernel.flow.variables(above) <= logarithmic:
                return False  # a bound that is not scaled with it
        elif isinstance(above, cst.BinaryOperation):
            if not isinstance(above.operator, cst.Subtract):
                # the scaling itself: s = product * scale
                statement = kernel.flow.statement_of(above)
                return statement is not None and occurrence.value not in logarithmic
            for side in (above.left, above.right):
                if not kernel.flow.variables(side) - _conditions(kernel, side) <= logarithmic:
                    return False  # less a value that is not scaled with it, a saved sum say
        elif isinstance(above, cst.AssignTarget):
            return _bound_to_logarithm(kernel, above, logarithmic)
        elif isinstance(above, cst.AugAssign):
            return isinstance(above.operator, cst.MultiplyAssign)
        elif isinstance(above, cst.Assign):
            target = above.targets[0].target
            return isinstance(target, cst.Name) and target.value in logarithmic
        elif isinstance(above, (cst.Return, cst.Expr)):
            return False
    return False


def _bound_to_logarithm(kernel: TritonKernel, target: cst.AssignTarget, logarithmic: set[str]) -> bool:
    """Return the values that are assigned to a logarithmic name: another one, the scaled product, or minus infinity."""
    assign = kernel.source.parent(target)
    if not isinstance(assign, cst.Assign):
        return False
    if kernel.flow.variables(assign.value) & logarithmic or _factor(kernel, assign.value) is not None:
        return True
    code = kernel.source.code(assign.value)
    return "inf" in code or kernel.is_call(assign.value, "dot")
