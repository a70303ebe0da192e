"""End the loop over keys at the diagonal: blocks above it are masked out as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.storage import sources

#: A score of this or less has no weight beside any other: its exponential is zero in float32.
_MASKED = -1e4


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    minimum = kernel.spell("minimum")
    if minimum is None or not kernel.calls("dot"):
        return
    for mask in kernel.calls("where"):
        loop = next((p for p in kernel.source.parents(mask) if isinstance(p, cst.For)), None)
        end = _end(kernel, loop) if loop is not None else None
        if loop is None or end is None or len(mask.args) != 3 or not _is_masked(kernel, mask.args[2].value):
            continue
        past = _past_diagonal(kernel, loop, mask)
        if past is None or not _only_weights(kernel, loop, mask):
            continue
        flags = _flags(kernel, loop, mask)
        if flags is None:
            continue
        bounded = f"{minimum}({kernel.source.code(end)}, {past})"
        if not flags:
            yield Rewrite((kernel.source.replace(end, bounded),), _SUMMARY)
        elif "last_key" not in {n.value for n in kernel.flow.names}:
            lines = f"last_key = {kernel.source.code(end)}\nif {flags}:\n"
            lines += f"{kernel.source.step}last_key = {minimum}(last_key, {past})"
            yield Rewrite(
                (kernel.source.before(loop, lines), kernel.source.replace(end, "last_key")), _SUMMARY
            )
        return


_SUMMARY = "End the loop over keys at the diagonal, above which all scores are masked."


def _end(kernel: TritonKernel, loop: cst.For) -> cst.BaseExpression | None:
    """Return the end of ``range(0, end, block)`` or ``range(cdiv(end, block))``, where no program shortens
    it."""
    call = loop.iter
    if not isinstance(call, cst.Call) or kernel.source.code(call.func) not in (
        "range",
        kernel.spell("range"),
    ):
        return None
    placed = [a.value for a in call.args if a.keyword is None]
    if not placed or (len(placed) > 1 and kernel.source.code(placed[0]) != "0"):
        return None
    end = placed[0] if len(placed) == 1 else placed[1]
    if len(placed) < 3:
        path = kernel.names.path(end.func) if isinstance(end, cst.Call) and len(end.args) == 2 else None
        if not isinstance(end, cst.Call) or path not in ("triton.cdiv", "triton.language.cdiv"):
            return None
        end = end.args[0].value
    programs = [s.target_name for s in kernel.flow.simple() if _reads_program(kernel, s.node)]
    return end if not set(programs) & sources(kernel, end) and not _reads_program(kernel, end) else None


def _reads_program(kernel: TritonKernel, node: cst.CSTNode) -> bool:
    return any(kernel.is_call(c, "program_id") for c in kernel.source.walk(node, cst.Call))


def _is_masked(kernel: TritonKernel, node: cst.BaseExpression) -> bool:
    text = kernel.source.code(node).replace('"', "'").replace(" ", "")
    if text in ("float('-inf')", "-float('inf')") or text.endswith((".neg_inf", "-math.inf", "-torch.inf")):
        return True
    try:
        return float(text) <= _MASKED
    except ValueError:
        return False


def _past_diagonal(kernel: TritonKernel, loop: cst.For, mask: cst.Call) -> str | None:
    """Return the first key after the block's last query row, where the mask keeps keys up to the row and no
    others."""
    condition = _meaning(kernel, mask.args[0].value)
    for node in _conjuncts(condition):
        if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
            continue
        left, operator, right = node.left, node.comparisons[0].operator, node.comparisons[0].comparator
        if isinstance(operator, cst.LessThanEqual):
            left, right = right, left
        elif not isinstance(operator, cst.GreaterThanEqual):
            continue
        start = _block_start(kernel, _lanes(left))
        keys = _lanes(right)
        if start is not None and keys is not None and _varies(kernel, loop, keys):
            return start
    return None


def _conjuncts(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitAnd):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _meaning(kernel: TritonKernel, node: cst.BaseExpression) -> cst.BaseExpression:
    definition = kernel.flow.definition(node) if isinstance(node, cst.Name) else None
    return definition.value if definition is not None and definition.value is not None else node


def _lanes(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``x`` of ``x[:, None]`` and ``x[None, :]``."""
    return node.value if isinstance(node, cst.Subscript) else None


def _block_start(kernel: TritonKernel, lanes: cst.BaseExpression | None) -> str | None:
    """``(start + 1) * BLOCK`` for lanes that are ``start * BLOCK + arange(0, BLOCK)`` of a program."""
    value = _meaning(kernel, lanes) if lanes is not None else None
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
        return None
    for product, lanes_of in ((value.left, value.right), (value.right, value.left)):
        lane, base = _meaning(kernel, lanes_of), _meaning(kernel, product)
        if not isinstance(lane, cst.Call) or not kernel.is_call(lane, "arange") or len(lane.args) != 2:
            continue
        if not isinstance(base, cst.BinaryOperation) or not isinstance(base.operator, cst.Multiply):
            continue
        block = kernel.source.code(lane.args[1].value)
        for start, size in ((base.left, base.right), (base.right, base.left)):
            if kernel.source.code(size) == block and _reads_program(kernel, _meaning(kernel, start)):
                return f"({kernel.source.code(start)} + 1) * {block}"
    return None


def _varies(kernel: TritonKernel, loop: cst.For, keys: cst.BaseExpression) -> bool:
    """Return whether key positions begin at zero and go on with the loop: its variable, in elements or blocks, plus
    lanes."""
    variable = kernel.source.code(loop.target)
    value = _meaning(kernel, keys)
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
        return False
    for base, lanes in ((value.left, value.right), (value.right, value.left)):
        if kernel.is_call(_meaning(kernel, lanes), "arange"):
            start = _meaning(kernel, base)
            if isinstance(start, cst.BinaryOperation) and isinstance(start.operator, cst.Multiply):
                return variable in (kernel.source.code(start.left), kernel.source.code(start.right))
            return kernel.source.code(start) == variable
    return False


def _only_weights(kernel: TritonKernel, loop: cst.For, mask: cst.Call) -> bool:
    """Return whether the loop weighs its masked scores by an exponential, and stores nothing itself."""
    inside = list(kernel.source.walk(loop.body, cst.Call))
    if any(kernel.is_call(c, "store") or kernel.names.foreign(c.func, ("triton", "math")) for c in inside):
        return False
    statement = kernel.flow.statement_of(mask)
    return statement is not None and any(
        kernel.is_call(c, "exp", "exp2", "math.exp2", "math.exp") for c in inside
    )


def _flags(kernel: TritonKernel, loop: cst.For, mask: cst.Call) -> str | None:
    """Return the condition on constexprs under which the mask is applied.

    Empty where it always is, None where it depends on anything else.
    """
    tests = []
    for above in kernel.source.parents(mask):
        if above is loop:
            break
        if isinstance(above, cst.If):
            tests.append(above)
    if not tests:
        return ""
    (test, *more) = tests
    in_branch = any(p is test.body for p in kernel.source.parents(mask))
    constant = kernel.flow.variables(test.test) <= kernel.constexprs
    return kernel.source.code(test.test) if not more and in_branch and constant else None
