"""Reads element-wise NKI calls in one form: steps against a scalar or column, activations, pairs of tiles."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.statement import root_name

#: Operations that VectorE applies between a tile and a number or column.
SCALAR_OPS = frozenset({"add", "subtract", "multiply", "maximum", "minimum", "divide"})

#: Functions that ScalarE computes of ``data * scale + bias``.
ACTIVATIONS = frozenset({"exp", "sqrt", "rsqrt", "square", "log", "tanh", "sigmoid", "silu", "gelu", "copy"})


@dataclass(frozen=True)
class ScalarStep:
    """``data op operand``, or ``operand op data`` when ``reverse``. ``operand`` is a number or a column."""

    op: str
    operand: cst.BaseExpression
    reverse: bool = False


@dataclass(frozen=True)
class ScalarSteps:
    """An instruction that applies one or two steps to ``data`` (what ``nisa.tensor_scalar`` does)."""

    instruction: NkiCall
    data: cst.BaseExpression
    steps: tuple[ScalarStep, ...]


@dataclass(frozen=True)
class Activation:
    """An instruction that computes ``op(data * scale + bias)``. None stands for scale 1 and bias 0."""

    instruction: NkiCall
    op: str
    data: cst.BaseExpression
    scale: cst.BaseExpression | None
    bias: cst.BaseExpression | None


@dataclass(frozen=True)
class TensorPair:
    """An instruction that computes ``left op right`` of two tiles (what ``nisa.tensor_tensor`` does)."""

    instruction: NkiCall
    op: str
    left: cst.BaseExpression
    right: cst.BaseExpression


@dataclass(frozen=True)
class FreeAxisReduction:
    """An instruction that reduces ``data`` along its free dimension with ``op`` ("add", "max", "min")."""

    instruction: NkiCall
    op: str
    data: cst.BaseExpression


def operation(kernel: NkiKernel, node: cst.BaseExpression | None) -> str | None:
    """Return the short name of an operation token: "multiply" for ``nl.multiply`` and for ``np.multiply``."""
    if node is None:
        return None
    path = kernel.path(node)
    module, _, name = (path or "").rpartition(".")
    return name if module in (NL, "numpy") else None


def scalar_steps(kernel: NkiKernel, instruction: NkiCall | None) -> ScalarSteps | None:
    if instruction is None:
        return None
    if instruction.path == f"{NISA}.tensor_scalar":
        steps = _tensor_scalar_steps(kernel, instruction)
        data = instruction.get("data")
        return ScalarSteps(instruction, data, steps) if steps and data is not None else None
    op = _binary(instruction)
    if op is None:
        return None
    x, y = instruction.get("x"), instruction.get("y")
    if x is None or y is None:
        return None
    kinds = kind(kernel, x), kind(kernel, y)
    if kinds[0] in ("tile", "column") and (kinds[1] == "number" or kinds == ("tile", "column")):
        return ScalarSteps(instruction, x, (ScalarStep(op, y),))
    if kinds[1] in ("tile", "column") and (kinds[0] == "number" or kinds == ("column", "tile")):
        return ScalarSteps(instruction, y, (ScalarStep(op, x, reverse=True),))
    return None


def _tensor_scalar_steps(kernel: NkiKernel, instruction: NkiCall) -> tuple[ScalarStep, ...]:
    steps = []
    for n in ("0", "1"):
        op, operand = operation(kernel, instruction.get(f"op{n}")), instruction.get(f"operand{n}")
        if n == "1" and kernel.is_none(instruction.get("op1")):
            break
        reverse = instruction.get(f"reverse{n}")
        if op not in SCALAR_OPS or operand is None:
            return ()
        if reverse is not None and kernel.code(reverse) not in ("True", "False"):
            return ()
        steps.append(ScalarStep(op, operand, kernel.code(reverse) == "True"))
    return tuple(steps)


def _binary(instruction: NkiCall) -> str | None:
    module, _, name = instruction.path.rpartition(".")
    return name if module == NL and name in SCALAR_OPS else None


def activation(kernel: NkiKernel, instruction: NkiCall | None) -> Activation | None:
    if instruction is None:
        return None
    if instruction.path == f"{NISA}.activation":
        op, data = operation(kernel, instruction.get("op")), instruction.get("data")
        if (
            op is None
            or data is None
            or set(instruction.args) - {"op", "data", "scale", "bias", "mask", "dtype"}
        ):
            return None
        scale, bias = instruction.get("scale"), instruction.get("bias")
        if scale is None or number(kernel.flow, scale) == 1:
            scale = None
        if bias is None or kernel.is_none(bias) or is_zero(kernel, bias):
            bias = None
        return Activation(instruction, op, data=data, scale=scale, bias=bias)
    module, _, name = instruction.path.rpartition(".")
    if module == NL and name in ACTIVATIONS - {"copy"}:
        return Activation(instruction, name, data=instruction["x"], scale=None, bias=None)
    return None


def square(kernel: NkiKernel, instruction: NkiCall | None) -> Activation | None:
    """Return a product of a tile with itself, as the activation that computes the same."""
    both = pair(kernel, instruction)
    if both is None or both.op != "multiply" or not kernel.source.same(both.left, both.right):
        return None
    return Activation(both.instruction, "square", data=both.left, scale=None, bias=None)


def pair(kernel: NkiKernel, instruction: NkiCall | None) -> TensorPair | None:
    if instruction is None:
        return None
    if instruction.path == f"{NISA}.tensor_tensor":
        op = operation(kernel, instruction.get("op"))
        left, right = instruction.get("data1"), instruction.get("data2")
    else:
        op, left, right = _binary(instruction), instruction.get("x"), instruction.get("y")
    if op is None or left is None or right is None:
        return None
    both = kind(kernel, left) == "tile" and kind(kernel, right) == "tile"
    return TensorPair(instruction, op, left, right) if both else None


def reduction(kernel: NkiKernel, instruction: NkiCall) -> FreeAxisReduction | None:
    """Return a sum, maximum or minimum over the whole free dimension of a two-dimensional tile."""
    module, _, name = instruction.path.rpartition(".")
    if instruction.path == f"{NISA}.tensor_reduce":
        op, data = operation(kernel, instruction.get("op")), instruction.get("data")
        if kernel.code(instruction.get("negate")) not in (None, "False"):
            return None
    elif module == NL and name in ("sum", "max", "min"):
        op, data = {"sum": "add"}.get(name, name), instruction.get("x")
    else:
        return None
    axis = (kernel.code(instruction.get("axis")) or "").strip("[]() ,")
    if op is None or data is None or axis not in ("1", "-1"):
        return None
    return FreeAxisReduction(instruction, {"maximum": "max", "minimum": "min"}.get(op, op), data)


def is_zero(kernel: NkiKernel, node: cst.BaseExpression) -> bool:
    """Return whether a tile holds only zeros: it is set once, by a memset of 0."""
    definition = kernel.definition(node)
    if definition is not None and definition.path == f"{NISA}.memset":
        return number(kernel.flow, definition.get("value")) == 0
    return definition is not None and definition.path == f"{NL}.zeros"


def keeps_precision(kernel: NkiKernel, inner: NkiCall, outer: NkiCall) -> bool:
    """Return whether the result may skip the rounding of ``inner``'s result to its type."""
    if kernel.dialect.mutates:
        types = [destination_type(kernel, i) for i in (inner, outer)]
        return types[0] is not None and (types[0] == types[1] or types[0].rpartition(".")[2] == "float32")
    dtype = kernel.code(inner.get("dtype"))
    return dtype is None or dtype.rpartition(".")[2] == "float32" or dtype == kernel.code(outer.get("dtype"))


def destination_type(kernel: NkiKernel, instruction: NkiCall) -> str | None:
    """Return the type of the tensor that an instruction writes, as its allocation states it."""
    name = root_name(instruction.destination) if instruction.destination is not None else None
    allocation = kernel.flow.allocation(name) if name else None
    own = kernel.instruction(allocation.value) if allocation and allocation.value else None
    return kernel.code(own.get("dtype")) if own else None
