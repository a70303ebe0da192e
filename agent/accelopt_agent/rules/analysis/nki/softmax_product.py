"""Reads the softmax of a product that is multiplied by a further matrix, as attention is: for each tile of queries the
scores with all keys, their maximum, powers and sum, and the product of the weights with the values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import number, number_of_text
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.elementwise import activation, reduction, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.nki.resident_tiles import counted
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, tile
from accelopt_agent.rules.analysis.statement import Statement, root_name
from accelopt_profiling.nki.operations.table import names

_COPIES, _TRANSPOSES, _PRODUCTS = names("copy"), names("transpose"), names("product")


@dataclass(frozen=True)
class Operand:
    """A tile that a product reads, ``code``, and the statements that make it: once for each of ``count`` iterations of
    ``loop`` over ``variable``. ``turned`` says that TensorE needs the transpose of it."""

    code: str
    shape: TileShape
    statements: tuple[Statement, ...]
    loop: cst.For
    variable: str
    count: str
    turned: bool = False


@dataclass(frozen=True)
class SoftmaxProduct:
    """``query`` is what the loop over tiles of queries makes, ``keys`` (features by keys) and ``values`` (keys by
    features) what the two loops in it do. ``scale`` is what the scores are multiplied by, ``weights`` the shape of a
    row of weights, ``mixed`` their product with the values, ``total`` the sum of the powers; ``normalised`` says that
    they are divided by it before the product. ``after`` is what follows the product."""

    query: Operand
    keys: Operand
    values: Operand
    scale: str | None
    weights: TileShape
    mixed: str
    total: str
    normalised: bool
    after: tuple[Statement, ...]


def softmax_product(kernel: NkiKernel, loop: cst.For) -> SoftmaxProduct | None:
    """Return what ``loop`` computes for each tile of queries, if it is that and nothing else."""
    body = [s for s in kernel.flow.statements if s.block is loop.body]
    inner = [s.node for s in body if isinstance(s.node, cst.For)]
    if len(inner) != 2 or loop.orelse is not None or any(not s.simple and s.node not in inner for s in body):
        return None
    scoring, mixing = (_LoopBody.of(kernel, node) for node in inner)
    softmax = _Softmax.of(kernel, body, mixing) if scoring is not None and mixing is not None else None
    if scoring is None or mixing is None or softmax is None:
        return None
    return _whole(kernel, loop, body=body, scoring=scoring, mixing=mixing, softmax=softmax)


@dataclass(frozen=True)
class _LoopBody:
    """A loop with one product: its statements, the product and the statement that it is."""

    loop: cst.For
    variable: str
    count: str
    statements: tuple[Statement, ...]
    product: NkiCall
    statement: Statement

    @classmethod
    def of(cls, kernel: NkiKernel, loop: cst.For) -> _LoopBody | None:
        statements = [s for s in kernel.flow.statements if loop in s.loops]
        variable, count = loop_variable(loop), counted(kernel, loop)
        if variable is None or count is None or loop.orelse is not None:
            return None
        if any(s.block is not loop.body or not s.simple for s in statements):
            return None
        products = [(p, s) for s in statements for p in _products(kernel, s)]
        if len(products) != 1 or set(products[0][0].args) - {"x", "y", "transpose_x", "stationary", "moving"}:
            return None
        return cls(loop, variable, count, tuple(statements), *products[0])

    def operand(self, code: str, shape: TileShape, apart: set[Statement]) -> Operand:
        rest = tuple(s for s in self.statements if s not in apart)
        return Operand(code, shape, statements=rest, loop=self.loop, variable=self.variable, count=self.count)


def _products(kernel: NkiKernel, statement: Statement) -> list[NkiCall]:
    calls = kernel.source.walk(statement.node, cst.Call)
    products = [kernel.instruction(c, statement) for c in calls if kernel.path(c.func) in _PRODUCTS]
    return [p for p in products if p is not None]


def _stationary(kernel: NkiKernel, product: NkiCall) -> tuple[cst.BaseExpression, bool]:
    """Return the first operand, and whether TensorE needs the transpose of it."""
    if product.path == f"{NISA}.nc_matmul":
        return product["stationary"], False
    return product["x"], kernel.code(product.get("transpose_x")) != "True"


def _moving(product: NkiCall) -> cst.BaseExpression:
    return product["moving"] if product.path == f"{NISA}.nc_matmul" else product["y"]


@dataclass(frozen=True)
class _Softmax:
    """The row of scores and what is made of it.

    ``statements`` compute that, ``turning`` transpose a part of the weights, which is ``part``. ``own`` are the names
    that nothing else may use.
    """

    scores: str
    weights: str
    total: str
    normalised: bool
    part: cst.BaseExpression
    statements: frozenset[Statement]
    turning: frozenset[Statement]
    own: frozenset[str]

    @classmethod
    def of(cls, kernel: NkiKernel, body: list[Statement], mixing: _LoopBody | None) -> _Softmax | None:
        if mixing is None:
            return None
        part, turned, turning = _untransposed(kernel, mixing)
        weights = root_name(part)
        if not turned or weights is None:
            return None
        makers = _Made(kernel, body)
        powers: str | None = weights
        total: str | None = None
        scaled = scalar_steps(kernel, makers.by(weights))
        if (
            scaled is not None
            and len(scaled.steps) == 1
            and kind(kernel, scaled.steps[0].operand) == "column"
        ):
            step, column = scaled.steps[0], _name(scaled.steps[0].operand)
            inverse = makers.by(column) if step.op == "multiply" else None
            if inverse is not None and inverse.path.rpartition(".")[2] == "reciprocal":
                total = _name(next(iter(inverse.args.values())))
            elif step.op == "divide" and not step.reverse:
                total = column
            powers = _name(scaled.data)
            if total is None:
                return None
        exponential = activation(kernel, makers.by(powers))
        if exponential is None or exponential.op != "exp" or exponential.scale is not None:
            return None
        scores, largest = _shifted(kernel, makers, exponential.data, exponential.bias)
        if scores is None or not _reduces(kernel, makers.by(largest), "max", scores):
            return None
        sums = [s.target_name for s in body if s.simple and _reduces(kernel, makers.of(s), "add", powers)]
        if len(sums) != 1 or sums[0] is None or total not in (None, sums[0]):
            return None
        makers.by(sums[0])
        outside = set() if total is not None else {sums[0]}
        own = frozenset(makers.names - outside | {scores})
        return cls(
            scores, weights, sums[0], total is not None, part, frozenset(makers.statements), turning, own
        )


def _shifted(
    kernel: NkiKernel, makers: _Made, data: cst.BaseExpression, bias: cst.BaseExpression | None
) -> tuple[str | None, str | None]:
    """Return the tile that is shifted before its exponential, and the column that is subtracted."""
    if bias is None:
        steps = scalar_steps(kernel, makers.by(_name(data)))
        if (
            steps is None
            or len(steps.steps) != 1
            or steps.steps[0].op != "subtract"
            or steps.steps[0].reverse
        ):
            return None, None
        return _name(steps.data), _name(steps.steps[0].operand)
    steps = scalar_steps(kernel, makers.by(_name(bias)))
    if steps is None or len(steps.steps) != 1 or steps.steps[0].op != "multiply":
        return None, None
    negated = number(kernel.flow, steps.steps[0].operand) == -1
    return (_name(data), _name(steps.data)) if negated else (None, None)


class _Made:
    """The instructions of a block by what they make, and which of them were asked for."""

    def __init__(self, kernel: NkiKernel, body: list[Statement]) -> None:
        self.kernel, self.body = kernel, body
        self.statements: set[Statement] = set()
        self.names: set[str] = set()

    def of(self, statement: Statement) -> NkiCall | None:
        return next((i for i in self.kernel.instructions if i.statement is statement), None)

    def by(self, name: str | None) -> NkiCall | None:
        """Return the instruction that alone makes the whole tile ``name``."""
        if name is None:
            return None
        allocation = self.kernel.flow.allocation(name)
        writers = [s for s in self.kernel.flow.writing(name) if s.simple and s is not allocation]
        if len(writers) != 1 or writers[0] not in self.body or not isinstance(writers[0].target, cst.Name):
            return None
        self.statements |= {writers[0]} | ({allocation} if allocation is not None else set())
        self.names.add(name)
        return self.of(writers[0])


def _name(node: cst.BaseExpression | None) -> str | None:
    return node.value if isinstance(node, cst.Name) else None


def _reduces(kernel: NkiKernel, instruction: NkiCall | None, op: str, data: str | None) -> bool:
    row_reduction = reduction(kernel, instruction) if instruction is not None else None
    return (
        row_reduction is not None
        and row_reduction.op == op
        and data is not None
        and _name(row_reduction.data) == data
    )


def _untransposed(
    kernel: NkiKernel, mixing: _LoopBody
) -> tuple[cst.BaseExpression, bool, frozenset[Statement]]:
    """Return what the first operand of a product is the transpose of, whether it is one, and what transposes it."""
    node, turned = _stationary(kernel, mixing.product)
    used: set[Statement] = set()
    while True:
        call = node if isinstance(node, cst.Call) else None
        definition = kernel.flow.definition(node) if isinstance(node, cst.Name) else None
        if (
            definition is not None
            and definition in mixing.statements
            and isinstance(definition.value, cst.Call)
        ):
            allocation = kernel.flow.allocation(node.value) if isinstance(node, cst.Name) else None
            used |= {definition} | ({allocation} if allocation is not None else set())
            call = definition.value
        path = None if call is None else kernel.path(call.func)
        if call is None or path not in _COPIES | _TRANSPOSES:
            return node, turned, frozenset(used)
        at = 1 if kernel.dialect.mutates else 0
        if len(call.args) <= at or call.args[at].keyword is not None:
            return node, False, frozenset(used)
        turned ^= path in _TRANSPOSES
        node = call.args[at].value


def _whole(
    kernel: NkiKernel,
    loop: cst.For,
    body: list[Statement],
    scoring: _LoopBody,
    mixing: _LoopBody,
    softmax: _Softmax,
) -> SoftmaxProduct | None:
    flow = kernel.flow
    variable, count = loop_variable(loop), counted(kernel, loop)
    mixed = root_name(_target(mixing.statement) or mixing.product.call)
    scores, allocated = _scores(kernel, scoring, softmax.scores), flow.allocation(softmax.scores)
    if variable is None or count is None or mixed is None or scores is None or allocated not in body:
        return None
    sum_made = flow.allocation(mixed)
    at = [n for n, s in enumerate(body) if s.node in (scoring.loop, mixing.loop)]
    before, after = body[: at[0]], body[at[1] + 1 :]
    softmax_statements = softmax.statements | {allocated, sum_made}
    if (
        at[0] > at[1]
        or any(s not in softmax_statements for s in body[at[0] + 1 : at[1]])
        or sum_made not in body
    ):
        return None
    query, keys, values = (
        _stationary(kernel, scoring.product),
        _moving(scoring.product),
        _moving(mixing.product),
    )
    shapes = [tile(kernel, node) for node in (keys, values)]
    row, weights = (
        _row_shape(kernel, softmax.scores),
        _row_shape(kernel, softmax.weights),
    )
    if shapes[0] is None or shapes[1] is None or row is None or weights is None:
        return None
    if None in (shapes[0].dtype, shapes[1].dtype, weights.dtype):
        return None
    if not _in_order(kernel, scores.part, scoring.variable, shapes[0].columns):
        return None
    if not _in_order(kernel, softmax.part, mixing.variable, shapes[1].rows):
        return None
    prefix = tuple(s for s in before if s not in softmax_statements)
    made_by_keys = scoring.operand(kernel.source.code(keys), shapes[0], scores.statements)
    made_by_values = mixing.operand(
        kernel.source.code(values), shapes[1], {mixing.statement, *softmax.turning}
    )
    shape = TileShape(row.rows, shapes[0].rows, shapes[0].dtype)
    made_by_query = Operand(
        kernel.source.code(query[0]),
        shape,
        statements=prefix,
        loop=loop,
        variable=variable,
        count=count,
        turned=query[1],
    )
    varying = flow.varying(loop)
    for operand in (made_by_keys, made_by_values):
        written = set().union(*(s.writes for s in operand.statements)) | {operand.variable}
        read = set().union(*(s.reads for s in operand.statements))
        if (read - written) & varying or softmax.own & (read | written):
            return None
    inside = {*softmax_statements, *scoring.statements, *mixing.statements}
    if any(softmax.own & (s.reads | s.writes) for s in body if s.simple and s not in inside):
        return None
    if any(loop not in kernel.source.parents(n) for name in softmax.own for n in flow.occurrences(name)):
        return None
    return SoftmaxProduct(
        made_by_query,
        made_by_keys,
        values=made_by_values,
        scale=scores.scale,
        weights=weights,
        mixed=mixed,
        total=softmax.total,
        normalised=softmax.normalised,
        after=tuple(after),
    )


def _target(statement: Statement) -> cst.BaseExpression | None:
    """Return what a product is added to."""
    body = statement.node.body if isinstance(statement.node, cst.SimpleStatementLine) else ()
    only = body[0] if len(body) == 1 else None
    if isinstance(only, cst.AugAssign):
        return only.target if isinstance(only.operator, cst.AddAssign) else None
    return statement.target or _first_argument(only)


def _first_argument(node: cst.CSTNode | None) -> cst.BaseExpression | None:
    call = node.value if isinstance(node, cst.Expr) else None
    return call.args[0].value if isinstance(call, cst.Call) and call.args else None


@dataclass(frozen=True)
class _Scores:
    """The number that a product is multiplied by, the part of the scores that the result is written to, and the
    statements that do both."""

    scale: str | None
    part: cst.BaseExpression
    statements: set[Statement]


def _scores(kernel: NkiKernel, scoring: _LoopBody, name: str) -> _Scores | None:
    flow, allocated = kernel.flow, kernel.flow.allocation(name)
    writers = [s for s in flow.writing(name) if s.simple and s is not allocated]
    part = writers[0].target if len(writers) == 1 and writers[0] in scoring.statements else None
    if part is None:
        return None
    apart = {writers[0], scoring.statement}
    instruction = next((i for i in kernel.instructions if i.statement is writers[0]), None)
    if instruction is not None and instruction.call is scoring.product.call:
        return _Scores(None, part, apart)
    data, scale = _scaled(kernel, instruction)
    if data is None or (scale is not None and kind(kernel, scale) != "number"):
        return None
    product = _name(data)
    if product is not None and _name(_target(scoring.statement)) == product:
        bound = flow.allocation(product)
        apart |= {bound} if bound is not None else set()
    elif data is not scoring.product.call:
        return None
    return _Scores(kernel.code(scale), part, apart)


def _scaled(
    kernel: NkiKernel, instruction: NkiCall | None
) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """Return the tile that an instruction copies or multiplies by a number, and the number."""
    steps, function = scalar_steps(kernel, instruction), activation(kernel, instruction)
    if steps is not None and len(steps.steps) == 1 and steps.steps[0].op == "multiply":
        return steps.data, steps.steps[0].operand
    if function is not None and function.op == "copy" and function.bias is None:
        return function.data, function.scale
    return (
        (instruction["src"], None)
        if instruction is not None and instruction.path in _COPIES
        else (None, None)
    )


def _row_shape(kernel: NkiKernel, name: str) -> TileShape | None:
    uses = kernel.flow.occurrences(name)
    return tile(kernel, uses[0]) if uses else None


def _in_order(kernel: NkiKernel, part: cst.BaseExpression, variable: str, width: str) -> bool:
    """Return whether a part of a row is that which ``variable`` counts, in steps of ``width``."""
    size = number_of_text(kernel.flow, width)
    if not isinstance(part, cst.Subscript) or size is None:
        return False
    index = part.slice[-1].slice
    if isinstance(index, cst.Slice):
        text = kernel.source.code(index.lower) if index.lower is not None else "0"
    elif isinstance(index, cst.Index) and isinstance(index.value, cst.Call):
        if kernel.path(index.value.func) != f"{NL}.ds":
            return False
        text = kernel.source.code(index.value.args[0].value)
    elif isinstance(index, cst.Index):
        text = _without_positions(kernel, index.value)
    else:
        return False
    starts = [number_of_text(kernel.flow, re.sub(rf"\b{variable}\b", str(n), text)) for n in (0, 1, 5)]
    return starts == [0, size, 5 * size]


def _without_positions(kernel: NkiKernel, node: cst.BaseExpression) -> str:
    """Return an index with 0 for what ``nl.arange`` makes."""
    source = kernel.source
    names = [n for n in source.walk(node, cst.Name) if n.value in kernel.index_variables]
    positions = [
        s
        for s in source.walk(node, cst.Subscript)
        if isinstance(s.value, cst.Call) and kernel.path(s.value.func) == f"{NL}.arange"
    ]
    return source.edited(node, *(source.replace(n, "0") for n in [*positions, *names]))
