"""Reads an NKI kernel of either dialect: its calls of known functions, with their arguments by name.

A function has one name in both dialects, "nl.multiply" or "nisa.activation", and an instruction one form: what it
reads by parameter, and what it writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import libcst as cst

from accelopt_agent.rules.analysis.data_flow import DataFlow
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.parsed_source import canonical
from accelopt_agent.rules.analysis.rule_context import RuleContext
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_profiling.nki.operations.table import NkiDialect, names, operations, table

NL = "nl"
NISA = "nisa"

#: Functions that make positions, not tiles: index arithmetic may call them.
INDEXING = frozenset(name.partition(".")[2] for name in names("index"))

#: What a loop that counts is over.
RANGES = names("range") | {"range"}

#: Keyword arguments through which a call writes a tile.
_WRITTEN = frozenset({"dst", "reduce_res"})

#: Packages whose functions write through those only.
_KNOWN = frozenset({"neuronxcc", "nki", "numpy", "math"})

#: Operators on tiles, and the functions that do the same.
_OPERATORS: dict[type[cst.BaseBinaryOp], str] = {
    cst.Add: f"{NL}.add",
    cst.Subtract: f"{NL}.subtract",
    cst.Multiply: f"{NL}.multiply",
    cst.Divide: f"{NL}.divide",
}


@dataclass(frozen=True, eq=False)
class NkiCall:
    """A call of a known NKI function.

    ``path`` is its name ("nisa.activation"), ``args`` what it reads by parameter.

    ``statement`` is the assignment or expression statement that the call is all of, None for one nested
    deeper. ``destination`` is the argument that an instruction of today's dialect writes.
    """

    path: str
    call: cst.Call | cst.BinaryOperation
    args: dict[str, cst.BaseExpression]
    statement: Statement | None
    destination: cst.BaseExpression | None = None

    def __getitem__(self, name: str) -> cst.BaseExpression:
        return self.args[name]

    def get(self, name: str) -> cst.BaseExpression | None:
        return self.args.get(name)


class NkiKernel:
    """The calls, arguments and variables of a kernel. ``dialect`` is the one that its file imports."""

    def __init__(self, subject: RuleContext) -> None:
        self.subject = subject
        self.source = subject.source
        self.names = subject.names
        beta1 = spelling("beta1")
        self.dialect = beta1 if self.names.spelled(beta1.full("nl.load")) else spelling("current")
        self._known_effects: dict[cst.Call, dict[cst.Arg, bool] | None] = {}
        written = self._written if self.dialect.mutates else None
        self.flow = DataFlow(
            subject.source,
            subject.function,
            names=subject.names,
            writing=_WRITTEN,
            packages=_KNOWN,
            written=written,
        )

    def path(self, node: cst.BaseExpression) -> str | None:
        """Return what a name means, a function of NKI by its name in both dialects ("nl.ndarray")."""
        path = self.names.path(node)
        return None if path is None else self.dialect.canonical(path)

    def spelled(self, path: str) -> str | None:
        """Return a function or constant ("nl.float32") as the file's imports write it, or None."""
        return self.names.spelled(self.dialect.full(path))

    def _written(self, call: cst.Call) -> dict[cst.Arg, bool] | None:
        """Return ``_effects`` of a call, found once."""
        if call not in self._known_effects:
            self._known_effects[call] = self._effects(call)
        return self._known_effects[call]

    def _effects(self, call: cst.Call) -> dict[cst.Arg, bool] | None:
        """Return the arguments that an instruction of today's dialect writes, its destination first, each with whether
        it may be read too; None where the call is no instruction."""
        path = self.path(call.func)
        if path is None or not path.startswith(f"{NISA}."):
            return None
        arguments = _named(call, self.dialect.parameters.get(path))
        if arguments is None:
            return dict.fromkeys(call.args[:1], True)
        adds = path in self.dialect.keeping
        return {arguments[name]: adds for name in operations()[path].writes if name in arguments}

    @cached_property
    def instructions(self) -> list[NkiCall]:
        """The statements that are one instruction, in source order: ``target = call(...)`` or ``call(...)``."""
        instructions = []
        for statement in self.flow.simple():
            value = statement.value
            node = statement.node
            if value is None and isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
                only = node.body[0]
                value = only.value if isinstance(only, cst.Expr) else None
            if value is not None and (instruction := self.instruction(value, statement)):
                instructions.append(instruction)
        return instructions

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
        variables: set[str] = set()
        for statement in self.flow.simple():
            if statement.value is not None and isinstance(statement.target, cst.Name):
                names = {n.value for n in self.source.walk(statement.value, cst.Name)}
                calls = [self.path(c.func) for c in self.source.walk(statement.value, cst.Call)]
                makes = f"{NL}.arange" in calls and not any(c in self.dialect.parameters for c in calls)
                if makes or (names & variables and not calls):
                    variables.add(statement.target.value)
        return variables

    def instruction(self, node: cst.BaseExpression, statement: Statement | None = None) -> NkiCall | None:
        """Return ``node`` as an instruction, or None when it is no call of a known function with plain arguments."""
        if isinstance(node, cst.BinaryOperation) and type(node.operator) in _OPERATORS:
            return NkiCall(
                _OPERATORS[type(node.operator)], node, {"x": node.left, "y": node.right}, statement
            )
        if not isinstance(node, cst.Call):
            return None
        path = self.path(node.func)
        arguments = _named(node, self.dialect.parameters.get(path or ""))
        if path is None or arguments is None:
            return None
        args = {name: arg.value for name, arg in arguments.items()}
        destination = args.pop("dst", None) if self.dialect.mutates else None
        return NkiCall(path, node, args=args, statement=statement, destination=destination)

    def of(self, *functions: str) -> list[NkiCall]:
        """Return the instructions that call one of ``functions``, written "nl.load" or "nisa.activation"."""
        return [i for i in self.instructions if i.path in functions]

    def definition(self, node: cst.BaseExpression) -> NkiCall | None:
        """Return the instruction that computes exactly ``node``, if there is one that certainly does."""
        statement = self.flow.definition(node)
        return next((i for i in self.instructions if i.statement is statement), None) if statement else None

    def producer(self, node: cst.BaseExpression, consumer: Statement) -> NkiCall | None:
        """Return the instruction whose only use is the operand ``node`` of ``consumer``, and that can move
        down to it.

        It stands in the same block, under no mask of its own, and nothing changes its operands in between.
        """
        definition = self.definition(node)
        if definition is None or definition.statement is None:
            return None
        reader = self.flow.only_reader(definition.statement)
        if reader is None or reader[0] is not node or reader[1] is not consumer:
            return None
        movable = self.flow.unchanged(definition.statement, consumer, self.flow.variables(definition.call))
        return definition if movable else None

    def without(self, instruction: NkiCall) -> list[ByteEdit]:
        """Return the edits that remove an instruction whose value nobody reads, and the tensor made for that
        value only."""
        statement = instruction.statement
        assert statement is not None
        edits = [self.source.without(statement.node)]
        if statement.in_memory and statement.target_name is not None:
            allocation = self.flow.allocation(statement.target_name)
            if allocation is not None:
                edits.append(self.source.without(allocation.node))
        return edits

    def spell(self, function: str, *positional: str, **arguments: str | None) -> str | None:
        """Return a call of ``function`` as this file would write it.

        Arguments that are None are left out.

        None when the file imports no module that has the function.
        """
        name = self.spelled(function)
        if name is None:
            return None
        written = [*positional, *(f"{k}={v}" for k, v in arguments.items() if v is not None)]
        return f"{name}({', '.join(written)})"

    def respelled(
        self, instruction: NkiCall, function: str, *positional: str, **arguments: str | None
    ) -> str | None:
        """Return a call of ``function`` that writes what ``instruction`` writes, to stand in its place.

        Today's dialect writes the same destination, whose type is that of the result, and knows no masks.
        """
        if not self.dialect.mutates:
            return self.spell(function, *positional, **arguments)
        if instruction.destination is None or arguments.pop("mask", None) is not None:
            return None
        arguments.pop("dtype", None)
        return self.spell(function, self.source.code(instruction.destination), *positional, **arguments)

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


def _named(call: cst.Call, parameters: tuple[str, ...] | None) -> dict[str, cst.Arg] | None:
    """Return the arguments of a call by parameter. None where that is not known."""
    if parameters is None:
        return None
    arguments: dict[str, cst.Arg] = {}
    for position, arg in enumerate(call.args):
        if arg.star or (arg.keyword is None and position >= len(parameters)):
            return None
        arguments[arg.keyword.value if arg.keyword else parameters[position]] = arg
    return arguments


def open_nki(subject: RuleContext) -> NkiKernel | None:
    """Return the kernel, or None when the file imports neither dialect's functions."""
    kernel = subject.analysis(NkiKernel)
    return kernel if kernel.spelled(f"{NL}.ndarray") else None


@dataclass(frozen=True)
class NkiSpelling:
    """One dialect.

    ``packages`` gives the module behind "nl" and "nisa", ``parameters`` the positional parameters of each known
    function ("nisa.activation"). ``mutates`` says that instructions write a destination, their first argument, instead
    of returning a tile; those in ``keeping`` may keep what is there or add to it.
    """

    name: str
    packages: Mapping[str, str]
    parameters: Mapping[str, tuple[str, ...]]
    mutates: bool
    keeping: frozenset[str]

    @property
    def package(self) -> str:
        return self.packages["nl"].removesuffix(".language")

    def canonical(self, path: str) -> str:
        """Return ``nl.load`` for ``neuronxcc.nki.language.load``; other paths as they are."""
        for short, package in self.packages.items():
            if path.startswith(f"{package}."):
                return f"{short}.{path[len(package) + 1 :]}"
        return path

    def full(self, path: str) -> str:
        """Return the path to import ``nl.load`` from; other paths as they are."""
        short, _, name = path.partition(".")
        return f"{self.packages[short]}.{name}" if short in self.packages else path


#: Kinds of functions that make no tile, or one that depends on more than their arguments.
_UNMOVED = frozenset(
    (
        "accumulation",
        "collective",
        "custom",
        "grid",
        "index",
        "loop",
        "program",
        "query",
        "random",
        "range",
        "register",
    )
)


@cache
def spelling(name: NkiDialect) -> NkiSpelling:
    """Return the dialect "beta1" (``neuronxcc.nki``) or "current" (``nki``).

    Rules know what computes or moves tiles; of today's ``nl`` only what allocates, as they move instructions with a
    destination. What leaves its result in the registers of an engine stays where it is.
    """
    parameters = {
        o.name: o.signatures[name].positional
        for o in operations().values()
        if name in o.signatures
        and o.kind not in _UNMOVED
        and (name == "beta1" or o.kind == "allocation" or o.name.startswith(f"{NISA}."))
    }
    keeping = frozenset(path for path in parameters if operations()[path].keeps)
    return NkiSpelling(
        name, table()["packages"][name], parameters=parameters, mutates=name == "current", keeping=keeping
    )


def element(kernel: NkiKernel, node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what ``node`` stands for: for ``tiles[i]`` the value that alone is appended to ``tiles``, else itself."""
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Name):
        return node
    name = node.value.value
    bound = kernel.flow.binding(name)
    if len(bound) != 1 or not isinstance(bound[0].value, cst.List) or bound[0].value.elements:
        return node
    appended = [
        call.args[0].value
        for use in kernel.flow.occurrences(name)
        if isinstance(method := kernel.source.parent(use), cst.Attribute)
        and method.attr.value == "append"
        and isinstance(call := kernel.source.parent(method), cst.Call)
        and len(call.args) == 1
    ]
    return appended[0] if len(appended) == 1 else node
