"""Reads a Beta 1 NKI kernel: its calls of known functions, with their arguments by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from accelopt_agent.rules.analysis.data_flow import DataFlow
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.parsed_source import canonical
from accelopt_agent.rules.analysis.rule_context import RuleContext
from accelopt_agent.rules.analysis.statement import Statement

NL = "neuronxcc.nki.language"
NISA = "neuronxcc.nki.isa"

#: Functions that make positions, not tiles: index arithmetic may call them.
INDEXING = frozenset({"arange", "par_dim", "ds"})

#: Keyword arguments through which a call writes a tile.
_WRITTEN = frozenset({"dst", "reduce_res"})

#: Packages whose functions write through those only.
_KNOWN = frozenset({"neuronxcc", "nki", "numpy", "math"})

#: Positional parameters of the functions that rules look at (neuronx-cc 2.26 stubs).
_PARAMETERS: dict[str, tuple[str, ...]] = {
    f"{NISA}.activation": ("op", "data"),
    f"{NISA}.activation_reduce": ("op", "data"),
    f"{NISA}.tensor_scalar": ("data", "op0", "operand0", "reverse0", "op1", "operand1", "reverse1"),
    f"{NISA}.tensor_tensor": ("data1", "data2", "op"),
    f"{NISA}.tensor_tensor_scan": ("data0", "data1", "initial", "op0", "op1"),
    f"{NISA}.tensor_reduce": ("op", "data", "axis"),
    f"{NISA}.tensor_copy": ("src",),
    f"{NISA}.reciprocal": ("data",),
    f"{NISA}.memset": ("shape", "value", "dtype"),
    f"{NISA}.nc_matmul": ("stationary", "moving"),
    f"{NL}.load": ("src",),
    f"{NL}.store": ("dst", "value"),
    f"{NL}.copy": ("src",),
    f"{NL}.matmul": ("x", "y", "transpose_x"),
    f"{NL}.loop_reduce": ("x", "op", "loop_indices"),
    **{f"{NL}.{f}": ("shape", "dtype") for f in ("ndarray", "zeros", "ones")},
    **{f"{NL}.{f}": ("x", "y") for f in ("add", "subtract", "multiply", "divide", "maximum", "minimum")},
    **{f"{NL}.{f}": ("x", "axis") for f in ("sum", "max", "min", "mean")},
    **{
        f"{NL}.{f}": ("x",)
        for f in (
            "exp", "sqrt", "rsqrt", "square", "reciprocal", "negative", "log", "tanh", "sigmoid", "silu", "gelu",
        )
    },
}  # fmt: skip


#: Operators on tiles, and the functions that do the same.
_OPERATORS: dict[type[cst.BaseBinaryOp], str] = {
    cst.Add: f"{NL}.add",
    cst.Subtract: f"{NL}.subtract",
    cst.Multiply: f"{NL}.multiply",
    cst.Divide: f"{NL}.divide",
}


@dataclass(frozen=True, eq=False)
class NkiCall:
    """A call of a known NKI function; ``path`` is its full dotted name, ``args`` its arguments by name.

    ``statement`` is the assignment or expression statement that the call is all of, None for one nested
    deeper.
    """

    path: str
    call: cst.Call | cst.BinaryOperation
    args: dict[str, cst.BaseExpression]
    statement: Statement | None

    def __getitem__(self, name: str) -> cst.BaseExpression:
        return self.args[name]

    def get(self, name: str) -> cst.BaseExpression | None:
        return self.args.get(name)


class NkiKernel:
    """The calls, arguments and variables of a kernel in the Beta 1 dialect."""

    def __init__(self, subject: RuleContext) -> None:
        self.subject = subject
        self.source = subject.source
        self.names = subject.names
        self.flow = DataFlow(subject.source, subject.function, subject.names, _WRITTEN, _KNOWN)

    @cached_property
    def instructions(self) -> list[NkiCall]:
        """The statements that are one instruction, in source order: ``target = call(...)`` or ``call(...)``."""
        found = []
        for statement in self.flow.simple():
            value = statement.value
            node = statement.node
            if value is None and isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
                only = node.body[0]
                value = only.value if isinstance(only, cst.Expr) else None
            if value is not None and (instruction := self.instruction(value, statement)):
                found.append(instruction)
        return found

    @cached_property
    def arguments(self) -> set[str]:
        return {p.name.value for p in self.source.walk(self.subject.function.params, cst.Param)}

    @cached_property
    def indexed_arguments(self) -> set[str]:
        """Arguments that are indexed or asked for an attribute somewhere: tensors."""
        parents = ((n, self.source.parent(n)) for n in self.flow.names if n.value in self.arguments)
        return {n.value for n, above in parents if isinstance(above, (cst.Subscript, cst.Attribute))}

    @cached_property
    def loop_variables(self) -> set[str]:
        loops = (s.node for s in self.flow.statements if isinstance(s.node, cst.For))
        return {loop.target.value for loop in loops if isinstance(loop.target, cst.Name)}

    @cached_property
    def index_variables(self) -> set[str]:
        """Variables bound to ``nl.arange`` or arithmetic with it: positions, not tensors."""
        found: set[str] = set()
        for statement in self.flow.simple():
            if statement.value is not None and isinstance(statement.target, cst.Name):
                names = {n.value for n in self.source.walk(statement.value, cst.Name)}
                calls = [self.names.path(c.func) for c in self.source.walk(statement.value, cst.Call)]
                makes = f"{NL}.arange" in calls and not any(c in _PARAMETERS for c in calls)
                if makes or (names & found and not calls):
                    found.add(statement.target.value)
        return found

    def instruction(self, node: cst.BaseExpression, statement: Statement | None = None) -> NkiCall | None:
        """Return ``node`` as an instruction, or None when it is no call of a known function with plain arguments."""
        if isinstance(node, cst.BinaryOperation) and type(node.operator) in _OPERATORS:
            return NkiCall(
                _OPERATORS[type(node.operator)], node, {"x": node.left, "y": node.right}, statement
            )
        if not isinstance(node, cst.Call):
            return None
        path = self.names.path(node.func)
        if path not in _PARAMETERS:
            return None
        parameters = _PARAMETERS[path]
        args: dict[str, cst.BaseExpression] = {}
        for position, arg in enumerate(node.args):
            if arg.star or (arg.keyword is None and position >= len(parameters)):
                return None
            args[arg.keyword.value if arg.keyword else parameters[position]] = arg.value
        return NkiCall(path, node, args, statement)

    def of(self, *functions: str) -> list[NkiCall]:
        """Return the instructions that call one of ``functions``, written "nl.load" or "nisa.activation"."""
        paths = {full(f) for f in functions}
        return [i for i in self.instructions if i.path in paths]

    def definition(self, node: cst.BaseExpression) -> NkiCall | None:
        """Return the instruction that computes exactly ``node``, if there is one that certainly does."""
        statement = self.flow.definition(node)
        return next((i for i in self.instructions if i.statement is statement), None) if statement else None

    def producer(self, node: cst.BaseExpression, consumer: Statement) -> NkiCall | None:
        """Return the instruction whose only use is the operand ``node`` of ``consumer``, and that can move
        down to it.

        It stands in the same block, under no mask of its own, and nothing changes its operands in between.
        """
        found = self.definition(node)
        if found is None or found.statement is None:
            return None
        reader = self.flow.only_reader(found.statement)
        if reader is None or reader[0] is not node or reader[1] is not consumer:
            return None
        movable = self.flow.unchanged(found.statement, consumer, self.flow.variables(found.call))
        return found if movable else None

    def without(self, instruction: NkiCall) -> list[ByteEdit]:
        """Return the edits that remove an instruction whose value nobody reads, and the tensor made for that
        value only."""
        statement = instruction.statement
        assert statement is not None
        edits = [self.source.without(statement.node)]
        if isinstance(statement.target, cst.Subscript) and statement.target_name is not None:
            allocation = self.flow.allocation(statement.target_name)
            if allocation is not None:
                edits.append(self.source.without(allocation.node))
        return edits

    def spell(self, function: str, *positional: str, **arguments: str | None) -> str | None:
        """Return a call of ``function`` as this file would write it; arguments that are None are left out.

        None when the file imports no module that has the function.
        """
        name = self.names.spelled(full(function))
        if name is None:
            return None
        written = [*positional, *(f"{k}={v}" for k, v in arguments.items() if v is not None)]
        return f"{name}({', '.join(written)})"

    def code(self, node: cst.BaseExpression | None) -> str | None:
        """Return the text of an argument, None for one that is absent or ``None``."""
        return None if node is None or self.is_none(node) else self.source.code(node)

    def same_mask(self, one: NkiCall, other: NkiCall) -> bool:
        masks = [self.code(i.get("mask")) for i in (one, other)]
        return masks[0] == masks[1] or (
            None not in masks and canonical(masks[0] or "") == canonical(masks[1] or "")
        )

    def is_none(self, node: cst.BaseExpression | None) -> bool:
        return node is None or (isinstance(node, cst.Name) and node.value == "None")


def full(function: str) -> str:
    """Return the dotted path of a function written with the usual short module name."""
    module, _, name = function.partition(".")
    return f"{ {'nl': NL, 'nisa': NISA}[module] }.{name}".replace(" ", "")


def open_nki(subject: RuleContext) -> NkiKernel | None:
    """Return the kernel, or None when it does not use the Beta 1 language module (another dialect)."""
    kernel = subject.analysis(NkiKernel)
    return kernel if kernel.names.spelled(f"{NL}.load") else None
