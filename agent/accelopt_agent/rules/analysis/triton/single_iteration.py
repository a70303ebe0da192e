"""Writes loops over a row as the statements of their one iteration.

The loops walk over the same row in blocks, one after the other; the row fits into one block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit, apply_edits
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.analysis.triton.kernel import TL, TritonKernel
from accelopt_agent.rules.analysis.triton.masked_lanes import ignores_the_rest
from accelopt_agent.rules.analysis.triton.storage import apart
from accelopt_agent.rules.analysis.triton.values import Evaluation, Value, root


@dataclass(frozen=True)
class _Accumulator:
    """A variable that starts as zero, or as infinity for an extreme: after ``update`` it is what that combines with."""

    name: str
    start: Statement
    update: cst.SimpleStatementLine


@dataclass
class _Straight:
    """The loops written as the statements of their one iteration."""

    kernel: TritonKernel
    values: Evaluation
    accumulators: list[_Accumulator]
    #: What each statement of the loops loads and assigns, those written already left out.
    later: list[list[Value]]
    lines: list[str] = field(default_factory=list)
    #: What the variables hold that the lines bind, and how the names of the loops are called in them.
    holds: dict[str, Value] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    loads_saved: int = 0


def single_iteration(kernel: TritonKernel, loops: list[RowLoop], region: list[Statement]) -> list[str] | None:
    """Return the region as lines without loops. None where it cannot be written so, or reads nothing less."""
    accumulators = _accumulators(kernel, loops)
    straight = _Straight(kernel, _before(kernel, region[0]), accumulators, _walked(kernel, loops, region))
    straight.holds = dict(straight.values.variables)
    starts = [a.start for a in accumulators]
    for statement in region:
        loop = next((one for one in loops if one.statement is statement), None)
        if loop is None:
            if statement in starts:
                straight.values.walk([statement.node])
                straight.holds.update({n: straight.values.variables[n] for n in statement.writes})
            elif not _emit(straight, statement.node, in_loop=False):
                return None
            continue
        straight.values.variables[loop.variable] = straight.values.constant(0)
        straight.holds[loop.variable] = straight.values.constant(0)
        for line in loop.body:
            if not _emit(straight, line):
                return None
    calls = [c for s in region for c in kernel.source.walk(s.node, cst.Call)]
    length = straight.values.make("parameter", *loops[0].length.args)
    if straight.loads_saved == 0 or not ignores_the_rest(kernel, straight.values, calls, length):
        return None
    return straight.lines if _leaves_the_same(straight, loops, region) else None


def loop_region(kernel: TritonKernel, loops: list[RowLoop]) -> list[Statement] | None:
    """Return the statements from the first that gives a loop's accumulator its start to the last loop."""
    block = [s for s in kernel.flow.statements if s.block is loops[0].statement.block]
    inside = [one.statement for one in loops]
    first, last = block.index(inside[0]), block.index(inside[-1])
    starts = [block.index(a.start) for a in _accumulators(kernel, loops)]
    region = block[min([first, *starts]) : last + 1]
    return region if all(s in inside or s.simple for s in region) else None


def _accumulators(kernel: TritonKernel, loops: list[RowLoop]) -> list[_Accumulator]:
    """Return the accumulators of the loops that start from zero, or from minus infinity for a maximum."""
    block = [s for s in kernel.flow.statements if s.block is loops[0].statement.block]
    accumulators = []
    for start in block[: block.index(loops[-1].statement)]:
        if not isinstance(start.target, cst.Name) or start.value is None:
            continue
        name = start.target.value
        uses = [s for s in block[block.index(start) + 1 :] if name in s.reads | s.writes]
        loop = next((one for one in loops if uses and one.statement is uses[0]), None)
        lines = (
            [line for line in loop.body if name in kernel.flow.variables(line)] if loop is not None else []
        )
        if (
            lines
            and _combined(kernel, lines[0], name) is not None
            and _is_neutral(kernel, start.value, lines[0])
        ):
            accumulators.append(_Accumulator(name, start, lines[0]))
    return accumulators


def _combined(kernel: TritonKernel, line: cst.SimpleStatementLine, name: str) -> cst.BaseExpression | None:
    """Return what an update adds to its accumulator, or takes the maximum with."""
    small = line.body[0]
    if isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.AddAssign):
        return small.value if kernel.source.code(small.target) == name else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    value, sides = small.value, []
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        sides = [value.left, value.right]
    elif isinstance(value, cst.Call) and len(value.args) == 2:
        builtin = kernel.source.code(value.func) in ("max", "min")
        extreme = builtin or kernel.is_call(value, "maximum", "minimum")
        sides = [a.value for a in value.args] if extreme else []
    others = [side for side in sides if kernel.source.code(side) != name]
    return others[0] if len(others) == 1 and len(sides) == 2 else None


def _is_neutral(kernel: TritonKernel, start: cst.BaseExpression, update: cst.SimpleStatementLine) -> bool:
    """Return whether combining with ``start`` changes nothing."""
    text = kernel.source.code(start).replace(" ", "").replace("'", '"')
    small = update.body[0]
    if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call):
        low = kernel.source.code(small.value.func).rpartition(".")[2] in ("maximum", "max")
        infinite = ('-float("inf")', 'float("-inf")') if low else ('float("inf")',)
        if isinstance(start, cst.Call) and kernel.is_call(start, "full") and len(start.args) > 1:
            text = kernel.source.code(start.args[1].value).replace(" ", "").replace("'", '"')
        return text in infinite
    return text in ("0", "0.0", "0.") or kernel.is_call(start, "zeros")


def _before(kernel: TritonKernel, statement: Statement) -> Evaluation:
    """Return the values of the variables where ``statement`` stands."""
    values = Evaluation(kernel, apart(kernel))
    around = [p for p in kernel.source.parents(statement.node) if isinstance(p, cst.BaseCompoundStatement)]
    chain = [
        p for p in reversed(around) if kernel.flow.statement_of(p) is not None and p is not kernel.function
    ]
    block: list[cst.CSTNode] = list(kernel.function.body.body)
    for node in [*chain, statement.node]:
        if node not in block:
            break
        values.walk(block[: block.index(node)])
        if node is not statement.node:
            values.enter(node)
            block = list(getattr(node.body, "body", ()))
    return values


def _walked(kernel: TritonKernel, loops: list[RowLoop], region: list[Statement]) -> list[list[Value]]:
    """Return what the statements of the loops load and assign, one after the other, in a run of one iteration
    each."""
    values = _before(kernel, region[0])
    values_by_line: list[list[Value]] = []
    for statement in region:
        loop = next((one for one in loops if one.statement is statement), None)
        if loop is None:
            values.walk([statement.node])
            continue
        values.variables[loop.variable] = values.constant(0)
        for line in loop.body:
            values.walk([line])
            assigned = [a.value for a in line.body if isinstance(a, cst.Assign)]
            loads = [c for c in kernel.source.walk(line, cst.Call) if kernel.is_call(c, "load")]
            values_by_line.append(
                [value for node in (*assigned, *loads) if (value := values.of(node)) is not None]
            )
    return values_by_line


def _emit(straight: _Straight, line: cst.CSTNode, in_loop: bool = True) -> bool:
    """Write a statement, unless a variable holds what it computes. False where that cannot be done."""
    kernel, values = straight.kernel, straight.values
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return False
    small, held = line.body[0], dict(values.variables)
    values.walk([line])
    if in_loop:
        straight.later.pop(0)
    _keep_loads(straight, small)
    for name in kernel.flow.variables(small.value if isinstance(small, cst.Assign) else line):
        if straight.holds.get(straight.renamed.get(name, name)) is not held.get(name):
            return False
    started = next((a for a in straight.accumulators if a.update is line), None)
    if isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
        name = small.target.value
        text = (
            f"{name} = {_accumulated(straight, started, small.value)}" if started else _text(straight, line)
        )
        straight.lines.append(_commented(kernel, line, text))
        straight.holds[name] = values.variables[name]
        return name not in straight.renamed
    target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
    if isinstance(target, cst.Name) and isinstance(small, cst.Assign):
        added = _combined(kernel, line, target.value) if started else None
        return _assign(straight, line, name=target.value, written=small.value, added=added)
    straight.lines.append(_commented(kernel, line, _text(straight, line)))
    return isinstance(small, cst.Expr)


def _keep_loads(straight: _Straight, statement: cst.CSTNode) -> None:
    """Give what a statement loads inside of an expression a variable of its own, where a later one loads it again."""
    kernel, values = straight.kernel, straight.values
    whole = values.of(statement.value) if isinstance(statement, cst.Assign) else None
    if whole is not None and any(_same(v, whole) for line in straight.later for v in line):
        return  # the variable that it binds is what the later one takes
    for call in kernel.source.walk(statement, cst.Call):
        value = values.of(call)
        if not kernel.is_call(call, "load") or value is None or _keeper(straight, value) is not None:
            continue
        if value is whole or not any(_same(v, value) for line in straight.later for v in line):
            continue
        base = (root(values, value.args[0]) or "loaded").lower().removesuffix("_ptr").removesuffix("_pointer")
        names_in_use = {*straight.holds, *(n.value for n in kernel.source.walk(kernel.function, cst.Name))}
        name = next(
            n for n in (f"{base}_row", *(f"{base}_row_{i}" for i in range(2, 99))) if n not in names_in_use
        )
        straight.lines.append(f"{name} = {_text(straight, call)}")
        straight.holds[name] = value
        straight.loads_saved -= 1  # the statement itself takes it from there


def _assign(
    straight: _Straight,
    line: cst.SimpleStatementLine,
    name: str,
    written: cst.BaseExpression,
    added: cst.BaseExpression | None,
) -> bool:
    kernel, value = straight.kernel, straight.values.of(written)
    keeper = _keeper(straight, value, name)
    if keeper is not None:
        straight.renamed.pop(name, None)
        if keeper != name:
            straight.renamed[name] = keeper
        straight.loads_saved += value is not None and any(p.op == "load" for p in value.parts())
        return True
    text = _text(straight, added if added is not None else written)
    new = _spare(straight, name, written)
    straight.renamed.pop(name, None)
    if new != name:
        straight.renamed[name] = new
    straight.holds[new] = straight.values.variables[name]
    straight.lines.append(_commented(kernel, line, f"{new} = {text}"))
    return True


def _commented(kernel: TritonKernel, line: cst.CSTNode, text: str) -> str:
    comment = kernel.source.comment(line)
    return f"{text}  {comment}" if comment else text


def _keeper(straight: _Straight, value: Value | None, name: str = "") -> str | None:
    """Return the variable that holds ``value`` already: ``name`` if it does."""
    if value is None or value.op == "unknown" or value.number is not None:
        return None
    names = [n for n, content in straight.holds.items() if content is value]
    return name if name in names else next(iter(names), None)


def _spare(straight: _Straight, name: str, written: cst.BaseExpression) -> str:
    """Return a name for a new value of the variable ``name``, where what it holds now is needed further
    down."""
    present, kernel = straight.holds.get(name), straight.kernel
    loaded = present is not None and any(part.op == "load" for part in present.parts())
    if present is None or not loaded or not any(_same(v, present) for line in straight.later for v in line):
        return name
    names_in_use = {n.value for n in kernel.source.walk(kernel.function, cst.Name)}
    suffix = "masked" if kernel.is_call(written, "where") else "scaled"
    if isinstance(written, cst.BinaryOperation) and isinstance(written.operator, (cst.Add, cst.Subtract)):
        suffix = "shifted"
    return next(
        n for n in (f"{name}_{suffix}", *(f"{name}_{i}" for i in range(2, 99))) if n not in names_in_use
    )


def _same(one: Value, other: Value) -> bool:
    """Return whether two values of different evaluations are one: both number their values in the same order."""
    return one.serial == other.serial and one.op == other.op


def _accumulated(straight: _Straight, accumulator: _Accumulator, added: cst.BaseExpression) -> str:
    """Return what is added to nothing, in the type of the accumulator."""
    kernel, text = straight.kernel, _text(straight, added)
    value = accumulator.start.value
    if not isinstance(value, cst.Call) or not kernel.is_call(value, "zeros"):
        return text
    keywords = {a.keyword.value: a.value for a in value.args if a.keyword is not None}
    kind = keywords.get("dtype", value.args[1].value if len(value.args) > 1 else None)
    addend = straight.values.of(added)
    single = kind is not None and kernel.names.path(kind) == f"{TL}.float32"
    if kind is None or (single and addend is not None and _is_float32(addend)):
        return text
    inside = text if isinstance(added, (cst.Name, cst.Call)) else f"({text})"
    return f"{inside}.to({kernel.source.code(kind)})"


def _is_float32(value: Value) -> bool:
    """Return whether a value was converted to float32, or computed from such."""
    if value.op == "method" and value.args[0] == "to":
        return any(argument.op == "type" and argument.args[0] == "float32" for _, argument in value.args[2:])
    if value.op == "sum":
        return any(_is_float32(v) for product, _ in value.args for v in product)
    if value.op == "call" and value.args[0] == "where":
        return any(_is_float32(argument) for _, argument in value.args[2:])
    return value.op == "call" and value.args[0] in ("exp", "exp2", "log", "sqrt", "rsqrt", "sigmoid")


def _text(straight: _Straight, node: cst.CSTNode) -> str:
    """``node`` as written, with the loop's variable as zero and variables under the names that hold their values."""
    kernel, edits = straight.kernel, []
    source = kernel.source
    todo: list[cst.CSTNode] = [node]
    while todo:
        at = todo.pop()
        if isinstance(at, cst.BinaryOperation) and isinstance(at.operator, cst.Add):
            sides = [straight.values.of(side) for side in (at.left, at.right)]
            zero = [side is not None and side.number == 0 for side in sides]
            if any(zero):
                operand = at.right if zero[0] else at.left
                edits.append(ByteEdit(source.start(at), source.start(operand), ""))
                edits.append(ByteEdit(source.end(operand), source.end(at), ""))
                todo.append(operand)
                continue
        if kernel.is_call(at, "load") and (keeper := _keeper(straight, straight.values.of(at))) is not None:
            edits.append(source.replace(at, keeper))
            straight.loads_saved += 1
            continue
        if isinstance(at, cst.Name) and at.value in kernel.flow.variables(at):
            value = straight.values.of(at)
            if at.value in straight.renamed and not _is_target(kernel, at):
                edits.append(source.replace(at, straight.renamed[at.value]))
            elif value is not None and value.number == 0 and not _is_target(kernel, at):
                edits.append(source.replace(at, "0"))
            continue
        todo += source.children(at)
    start = source.start(node)
    moved = [ByteEdit(e.start - start, e.end - start, e.text) for e in edits if e.start < e.end]
    return apply_edits(source.code(node).encode(), moved).decode()


def _is_target(kernel: TritonKernel, name: cst.Name) -> bool:
    parent = kernel.source.parent(name)
    return isinstance(parent, cst.AssignTarget) or (
        isinstance(parent, cst.AugAssign) and parent.target is name
    )


def _leaves_the_same(straight: _Straight, loops: list[RowLoop], region: list[Statement]) -> bool:
    """Return whether what is read after the loops is under its own name."""
    kernel = straight.kernel
    end = kernel.source.end(loops[-1].statement.node)
    start = kernel.source.start(region[0].node)
    outer = loops[0].statement.loops
    written = {name for s in region for name in s.writes}
    for name in kernel.flow.names:
        at = kernel.source.start(name)
        after = at > end or (
            bool(outer) and at < start and any(p is outer[-1] for p in kernel.source.parents(name))
        )
        if not after or name.value not in written:
            continue
        rebinds = [
            s for s in kernel.flow.simple() if s.binds(name.value) and kernel.source.start(s.node) < at
        ]
        own = [s for s in rebinds if kernel.source.start(s.node) > end]
        if own:
            continue
        if name.value in {one.variable for one in loops}:
            return False
        if straight.holds.get(name.value) is not straight.values.variables.get(name.value):
            return False
    return True


@dataclass(frozen=True)
class RowLoop:
    """``for variable in range(0, length, block)``, or over the number of blocks, with plain statements only."""

    statement: Statement
    variable: str
    length: Value
    block: Value

    @property
    def body(self) -> list[cst.SimpleStatementLine]:
        assert isinstance(self.statement.node, cst.For)
        return [s for s in self.statement.node.body.body if isinstance(s, cst.SimpleStatementLine)]


def row_loops(kernel: TritonKernel, values: Evaluation) -> list[list[RowLoop]]:
    """Return loops with one length and block, grouped by the block of statements that they stand in; two or more
    each."""
    groups: dict[tuple[object, ...], list[RowLoop]] = {}
    for statement in kernel.flow.statements:
        loop = _row_loop(kernel, values, statement)
        if loop is not None:
            groups.setdefault((statement.block, loop.length, loop.block), []).append(loop)
    return [group for group in groups.values() if len(group) > 1]


def _row_loop(kernel: TritonKernel, values: Evaluation, statement: Statement) -> RowLoop | None:
    loop = statement.node
    if not isinstance(loop, cst.For) or loop.orelse is not None or not isinstance(loop.iter, cst.Call):
        return None
    variable, call = loop_variable(loop), loop.iter
    if variable is None or kernel.source.code(call.func) not in ("range", *_ranges(kernel)):
        return None
    if any(not isinstance(s, cst.SimpleStatementLine) or len(s.body) != 1 for s in loop.body.body):
        return None
    arguments = [values.of(a.value) for a in call.args if a.keyword is None]
    if any(value is None for value in arguments):
        return None
    if len(arguments) == 3 and arguments[0] is not None and arguments[0].number == 0:
        length, block = arguments[1], arguments[2]
    elif len(arguments) == 1 or (
        len(arguments) == 2 and arguments[0] is not None and arguments[0].number == 0
    ):
        count = _rounded_up(values, arguments[-1])
        if count is None:
            return None
        length, block = count
    else:
        return None
    if length is None or block is None or block.op != "parameter" or block.args[0] not in kernel.constexprs:
        return None
    return RowLoop(statement, variable, length, block)


def _ranges(kernel: TritonKernel) -> list[str]:
    return [name for word in ("range", "static_range") if (name := kernel.names.spelled(f"{TL}.{word}"))]


def _rounded_up(values: Evaluation, count: Value | None) -> tuple[Value, Value] | None:
    """Return the length and block of ``cdiv(length, block)`` or ``(length + block - 1) // block``."""
    if count is not None and count.op == "cdiv":
        length, block = count.args
        return (length, block) if isinstance(length, Value) and isinstance(block, Value) else None
    if count is not None and count.op == "FloorDivide":
        above, block = count.args
        if isinstance(above, Value) and isinstance(block, Value):
            terms = values.terms(above)
            if terms.get((block,)) == 1 and terms.get(()) == -1:
                rest = {p: n for p, n in terms.items() if p not in ((block,), ())}
                return values.total(rest), block
    return None
