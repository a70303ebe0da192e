"""NKI (Beta 1) calls of a kernel as instructions: which function, and its arguments by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from accelopt_agent.rules.flow import Flow, Statement
from accelopt_agent.rules.subject import Subject

NL = "neuronxcc.nki.language"
NISA = "neuronxcc.nki.isa"

#: Keyword arguments through which a call writes a tile.
_WRITTEN = frozenset({"dst", "reduce_res"})

#: Positional parameters of the functions that rules look at (neuronx-cc 2.26 stubs).
_PARAMETERS: dict[str, tuple[str, ...]] = {
    f"{NISA}.activation": ("op", "data"),
    f"{NISA}.activation_reduce": ("op", "data"),
    f"{NISA}.tensor_scalar": ("data", "op0", "operand0", "reverse0", "op1", "operand1", "reverse1"),
    f"{NISA}.tensor_tensor": ("data1", "data2", "op"),
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
    **{f"{NL}.{f}": ("shape", "dtype") for f in ("ndarray", "zeros")},
    **{f"{NL}.{f}": ("x", "y") for f in ("add", "subtract", "multiply", "divide", "maximum", "minimum")},
    **{f"{NL}.{f}": ("x", "axis") for f in ("sum", "max", "min", "mean")},
    **{
        f"{NL}.{f}": ("x",)
        for f in (
            "exp", "sqrt", "rsqrt", "square", "reciprocal", "negative", "log", "tanh", "sigmoid", "silu", "gelu",
        )
    },
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Instruction:
    """A call of a known NKI function; ``path`` is its full dotted name, ``args`` its arguments by name.

    ``statement`` is the assignment or expression statement that the call is all of, None for one nested
    deeper.
    """

    path: str
    call: cst.Call
    args: dict[str, cst.BaseExpression]
    statement: Statement | None

    def __getitem__(self, name: str) -> cst.BaseExpression:
        return self.args[name]

    def get(self, name: str) -> cst.BaseExpression | None:
        return self.args.get(name)


class NkiKernel:
    """A kernel in the Beta 1 dialect, ready to be asked about its instructions."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.source = subject.source
        self.names = subject.names
        self.flow = Flow(subject.source, subject.function, subject.names, _WRITTEN)

    @cached_property
    def instructions(self) -> list[Instruction]:
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

    def instruction(self, node: cst.BaseExpression, statement: Statement | None = None) -> Instruction | None:
        """``node`` as an instruction, or None when it is no call of a known function with plain arguments."""
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
        return Instruction(path, node, args, statement)

    def of(self, *functions: str) -> list[Instruction]:
        """The instructions that call one of ``functions``, written "nl.load" or "nisa.activation"."""
        paths = {full(f) for f in functions}
        return [i for i in self.instructions if i.path in paths]

    def is_none(self, node: cst.BaseExpression | None) -> bool:
        return node is None or (isinstance(node, cst.Name) and node.value == "None")


def full(function: str) -> str:
    """The dotted path of a function written with the usual short module name."""
    module, _, name = function.partition(".")
    return f"{ {'nl': NL, 'nisa': NISA}[module] }.{name}".replace(" ", "")


def open_nki(subject: Subject) -> NkiKernel | None:
    """The kernel, or None when it does not use the Beta 1 language module (another dialect)."""
    kernel = NkiKernel(subject)
    return kernel if kernel.names.spelled(f"{NL}.load") else None
