"""Change the arguments of an inferred call by what its launches on the emulator show of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.failure_site import FailureSite, NoValueError, failure_sites
from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.handle import Handle, taken
from accelopt_profiling.nki.index_reach import subscript_reach
from accelopt_profiling.problems.inference.arguments import InferredArgument, InferredCall
from accelopt_profiling.problems.inference.conditions import ConditionSolver
from accelopt_profiling.problems.inference.entries import EntryCandidate
from accelopt_profiling.problems.inference.guess import GUESSED_SIZES
from accelopt_profiling.problems.inference.subjects import CallSubjects
from accelopt_profiling.problems.inference.usage import FunctionUse

#: What the emulator raises, and Python for a size of 0; the code's own checks raise something else.
_FAULTS = (KernelFaultError, ArithmeticError, TypeError)
#: The least size of a tile that a loop steps by.
_TILE = 64
#: What a dimension gets that came out as negative.
_SIZE = 128
_SHAPE = re.compile(r"\((\d+(?:, \d+)*),?\)")


class LaunchSubjects(CallSubjects):
    """The arguments of a call of NKI kernels, and the ``machines`` of the launches that a run with them made."""

    keeps_dimensions = True

    def __init__(
        self,
        call: InferredCall,
        text: str,
        use: FunctionUse,
        entry: EntryCandidate,
        values: dict[str, Any],
        machines: Sequence[Machine],
    ) -> None:
        super().__init__(call, text, use, entry, values)
        self._arrays = {id(a.tile.block): a.array for machine in machines for a in machine.arguments}

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, (Handle, np.ndarray))

    def is_dtype(self, value: Any) -> bool:
        return isinstance(value, np.dtype)

    def argument_of(self, value: Any) -> InferredArgument | None:
        """Return the tensor argument that ``value`` is, or is a view of: a kernel's tensor, or an array."""
        value = taken(value)
        if isinstance(value, Tile):
            block = value.block
            while block.original is not None:  # its bits as another type
                block = block.original.block
            value = self._arrays.get(id(block))
        if not isinstance(value, np.ndarray):
            return None
        for name, candidate in self.values.items():
            if candidate is value or (
                isinstance(candidate, np.ndarray) and np.may_share_memory(candidate, value)
            ):
                return self.call.argument(name)
        return None

    def involved(self, error: BaseException) -> list[InferredArgument]:
        """Return the arguments that the statements an error passed through use, innermost first."""
        arguments: list[InferredArgument] = []
        for site in failure_sites(error):
            for node in site.expressions():
                if not isinstance(node, (ast.Name, ast.Attribute)):
                    continue
                try:
                    argument = self.argument_of(site.value(node))
                except NoValueError:
                    continue
                if argument is None and isinstance(node, ast.Name) and node.id in self._use.parameters:
                    argument = self.call.argument(node.id)
                if argument is not None and all(argument is not a for a in arguments):
                    arguments.append(argument)
        return arguments

    def put_on_chip(self, argument: InferredArgument) -> str | None:
        """Pass a tensor as a tile in SBUF, which has at most 128 partitions."""
        if argument.name in self.call.on_chip or not argument.dims:
            return None
        self.call.on_chip.append(argument.name)
        first = self._size(argument.dims[0])
        if first is not None and first > _SIZE:
            self.set_dimension(argument, 0, _SIZE, "a tile in SBUF")
        return f"{argument.name} is a tile in SBUF"

    def repair_fault(self, error: BaseException) -> str | None:
        """Change the call as a violation of the hardware's rules asks for; None where nothing is known to help."""
        for site in failure_sites(error) if isinstance(error, _FAULTS) else ():
            for pattern, mend in _TABLE:
                matched = re.search(pattern, str(error))
                if matched is not None and (change := mend(matched, _Place(site, self))):
                    return change
        return None


class _Place:
    """A statement that raised, and the arguments that it may be mended by."""

    def __init__(self, site: FailureSite, subjects: LaunchSubjects) -> None:
        self.subjects = subjects
        self._site, self._solver = site, ConditionSolver(site, subjects)
        self._line = f"line {site.statement.lineno}"
        self._why = f"size from {self._line}"

    def resize(self, current: int, target: int) -> str | None:
        """Make what has the size ``current`` here have ``target``: a size of the call, or what it is computed from."""
        change = self.subjects.resize(current, target, self._why)
        if change is not None:
            return change
        for node in self._numbers(current):
            if change := self._solver.set_number(node, current, target):
                return change
        return None

    def widen(self, size: int, target: int) -> str | None:
        """Give the one dimension of an argument that the statement indexes and that has ``size`` another one."""
        for node in self._site.expressions():
            argument = (
                self.subjects.argument_of(self._value(node.value))
                if isinstance(node, ast.Subscript)
                else None
            )
            shape = [] if argument is None else self.subjects.call.shape(argument)
            if argument is not None and shape.count(size) == 1:
                return self.subjects.resize_dimension(argument, shape.index(size), target, self._why)
        return None

    def spread(self, size: int, last: int) -> str | None:
        """Give an argument that was guessed, and that the statement indexes beyond ``size``, the dimensions that the
        loops around the statement end with."""
        for node in self._site.expressions():
            argument = (
                self.subjects.argument_of(self._value(node.value))
                if isinstance(node, ast.Subscript)
                else None
            )
            if argument is None or not isinstance(node, ast.Subscript):
                continue
            reach, shape = subscript_reach(self._site, node), self.subjects.call.shape(argument)
            guessed = _is_guessed(argument)
            ends = [end for end in reach if end is not None]
            beyond = any(e >= last for e, n in zip(ends, shape, strict=False) if n == size)
            if not beyond or len(ends) != len(reach) or not (guessed or len(ends) == len(shape)):
                continue
            goal = [
                end + 1 if end >= n or (guessed and not dim.isdigit()) else n
                for end, n, dim in zip(ends, shape, argument.dims, strict=False)
            ]
            return self.subjects.set_dims(argument, goal, f"shape from {self._line}", plain=True)
        return None

    def index(self, rank: int, target: int) -> str | None:
        """Give an argument of so many dimensions that the statement indexes as many as it has indices for."""
        for node in self._site.expressions():
            value = self._value(node.value) if isinstance(node, ast.Subscript) else None
            argument = self.subjects.argument_of(value)
            if argument is not None and len(argument.dims) == rank:
                return self.subjects.set_rank(argument, target, f"rank from {self._line}")
        return None

    def reshape(self, elements: int, shape: Sequence[int]) -> str | None:
        """Give the tensor of the statement that has so many ``elements`` the shape that it shall be reshaped to."""
        for node in self._site.expressions():
            argument = self.subjects.argument_of(self._value(node))
            if argument is not None and prod(self.subjects.call.shape(argument)) == elements:
                return self.subjects.set_dims(argument, list(shape), f"shape from {self._line}", plain=True)
        return None

    def either(self, a: int, b: int) -> str | None:
        """Make two sizes the same, preferably that of the machine, 128 or 512, where one of them is."""
        pairs = [(a, b), (b, a)]
        pairs.sort(key=lambda pair: pair[1] not in (128, 512))
        return next((change for pair in pairs if (change := self.resize(*pair))), None)

    def fill(self, shape: Sequence[int]) -> str | None:
        """Make a size that came out as 0 be 1, and a negative one of ``shape`` positive, by what it is computed from,
        here or earlier in the function."""
        for size in (n for n in shape if n < 0):
            for node in self._numbers(size):
                if change := self._solver.set_number(node, size, _SIZE):
                    return change
        quotients = (
            assigned
            for name, value in self._site.frame.f_locals.items()
            if type(value) is int and value == 0
            for assigned in self._solver.assigned(name)
            if isinstance(assigned, ast.BinOp) and isinstance(assigned.op, ast.FloorDiv)
        )
        for node in (*self._numbers(0), *quotients):
            if change := self._solver.set_number(node, 0, 1):
                return change
        return None

    def number_operand(self) -> str | None:
        """Pass a number in place of a tensor that the statement computes with."""
        for operation in self._site.expressions():
            sides = (operation.left, operation.right) if isinstance(operation, ast.BinOp) else ()
            for node in sides:
                argument = (
                    self.subjects.argument_of(self._value(node)) if isinstance(node, ast.Name) else None
                )
                if argument is not None and not argument.firm:
                    return self.subjects.make_value(argument.name, f"a number in {self._line}")
        return None

    def replace_tensor(self, value: str) -> str | None:
        """Pass ``value`` in place of a tensor of the statement."""
        for node in self._site.expressions():
            argument = self.subjects.argument_of(self._value(node)) if isinstance(node, ast.Name) else None
            if argument is not None and not argument.firm:
                return self.subjects.make_value(argument.name, f"no tensor in {self._line}", value)
        return None

    def put_on_chip(self, role: str) -> str | None:
        """Pass an argument of the statement as a tile in SBUF: the one of ``role``, if it names one."""
        nodes = [
            *(
                k.value
                for n in self._site.expressions()
                if isinstance(n, ast.Call)
                for k in n.keywords
                if k.arg == role
            ),
            *self._site.expressions(),
        ]
        for node in nodes:
            argument = self.subjects.argument_of(self._value(node))
            if argument is not None and (change := self.subjects.put_on_chip(argument)):
                return change
        return None

    def set_types(self, old: str, new: str) -> str | None:
        """Give all tensors of one type another one."""
        tensors = [t for t in self.subjects.call.tensors if t.dtype == old]
        for tensor in tensors:
            self.subjects.set_dtype(tensor, new, f"dtype from {self._line}")
        return f"the tensors of type {old} are {new}" if tensors else None

    def shrink(self) -> str | None:
        """Halve the largest size that the statement's tensors have."""
        sizes = [n for node in self._site.expressions() for n in self._shape(node)]
        for size in sorted({n for n in sizes if n > 64}, reverse=True):
            if change := self.resize(size, size // 2):
                return change
        return None

    def _value(self, node: ast.expr) -> Any:
        try:
            return self._site.value(node)
        except NoValueError:
            return None

    def _shape(self, node: ast.expr) -> tuple[int, ...]:
        value = taken(self._value(node))
        if isinstance(value, Tile):
            return value.shape
        return (value,) if type(value) is int else ()

    def _numbers(self, target: int) -> Iterator[ast.expr]:
        """Yield the expressions of the statement that are ``target``, also inside a shape that a name stands for."""
        for node in self._site.expressions():
            value = self._value(node)
            if type(value) is int and value == target and not isinstance(node, ast.Constant):
                yield node
            elif isinstance(value, tuple) and target in value and isinstance(node, ast.Name):
                yield from (
                    part
                    for assigned in self._solver.assigned(node.id)
                    if isinstance(assigned, ast.Tuple) and len(assigned.elts) == len(value)
                    for part, number in zip(assigned.elts, value, strict=True)
                    if number == target
                )


def _is_guessed(argument: InferredArgument) -> bool:
    """Tell whether a tensor has nothing but the sizes of its rank, which neither code nor documentation gave it."""
    return all(
        d.isdigit() or re.fullmatch(r"size\d*", d) or d.removesuffix("_2") in GUESSED_SIZES
        for d in argument.dims
    )


def _beyond(matched: re.Match[str], place: _Place) -> str | None:
    stop, size = int(matched["stop"]), int(matched["size"])
    return place.resize(size, stop) or place.resize(stop, size)


def _covers(matched: re.Match[str], place: _Place) -> str | None:
    last, size = int(matched["last"]), int(matched["size"])
    beyond = last + 1 - size
    if beyond >= _TILE and size % beyond == 0:
        last = 2 * size - 1  # the next tile of a loop that has more of them
    return (
        place.spread(size, last)
        or place.widen(size, last + 1)
        or place.resize(size, last + 1)
        or place.resize(last + 1, size)
    )


def _indexed(matched: re.Match[str], place: _Place) -> str | None:
    return place.index(int(matched["rank"]), int(matched["count"]))


def _limit(matched: re.Match[str], place: _Place) -> str | None:
    return place.resize(int(matched["size"]), int(matched["most"]))


def _pair(matched: re.Match[str], place: _Place) -> str | None:
    return place.either(int(matched["a"]), int(matched["b"]))


def _shapes(matched: re.Match[str], place: _Place) -> str | None:
    """Two shapes of one rank that differ: the first dimension in which they do."""
    shapes = [[int(n) for n in text.split(", ")] for text in _SHAPE.findall(matched.string)]
    for one in shapes:
        for other in shapes:
            if len(one) == len(other):
                for a, b in zip(one, other, strict=True):
                    if a != b and (change := place.either(a, b)):
                        return change
    return None


def _reshaped(matched: re.Match[str], place: _Place) -> str | None:
    own, shape = ([int(n) for n in re.findall(r"\d+", matched[part])] for part in ("own", "shape"))
    return place.reshape(prod(own), shape)


def _empty(matched: re.Match[str], place: _Place) -> str | None:
    return place.fill([int(n) for n in re.findall(r"-?\d+", matched.groupdict().get("shape") or "")])


def _flag(matched: re.Match[str], place: _Place) -> str | None:
    """A tensor stands where a flag is needed."""
    return place.replace_tensor("False")


def _operand(matched: re.Match[str], place: _Place) -> str | None:
    """A tensor stands in arithmetic, which today's tensors have not."""
    return place.number_operand()


def _on_chip(matched: re.Match[str], place: _Place) -> str | None:
    """An instruction of today's dialect works on a tensor in HBM: the kernel is called with tiles."""
    return place.put_on_chip(matched["role"])


def _half(matched: re.Match[str], place: _Place) -> str | None:
    """The kernel computes in bfloat16 what it takes for its arguments' type."""
    return place.set_types("float32", "bfloat16")


def _too_large(matched: re.Match[str], place: _Place) -> str | None:
    return place.shrink()


_Mend = Callable[[re.Match[str], _Place], str | None]
_TABLE: list[tuple[str, _Mend]] = [
    (r"shape \((?P<shape>[^)]*)\) has no elements|by zero", _empty),
    (r"(?P<own>[\d, ]+)\)? (?:cannot be reshaped to|elements cannot have the shape) \((?P<shape>[\d, ]+)\)", _reshaped),
    (r"no truth value", _flag),
    (r"Tensors have no operator", _operand),
    (r"slice (?P<start>\d+):(?P<stop>\d+) leaves dimension \d+ of size (?P<size>\d+)", _beyond),
    (r"index covers \d+ to (?P<last>\d+); the dimension has size (?P<size>\d+)", _covers),
    (r"An index reaches (?P<last>\d+); dimension \d+ has size (?P<size>\d+)", _covers),
    (r"Index (?P<last>\d+) is outside (?:block )?dimension \d+ of size (?P<size>\d+)", _covers),
    (r"(?P<count>\d+) indices for a tensor of (?P<rank>\d+) dimensions", _indexed),
    (r"The (?P<role>\w+)[\w ]* lies in HBM; bring it to SBUF", _on_chip),
    (r"bfloat16.*float32|float32.*bfloat16", _half),
    (r"pattern reaches element (?P<last>\d+); the tensor has (?P<size>\d+)", _covers),
    (r"partition dimension is (?P<size>\d+); \w+ has (?P<most>\d+) partitions", _limit),
    (r"has (?P<size>\d+) columns; TensorE takes at most (?P<most>\d+)", _limit),
    (r"at most (?P<most>\d+) elements per partition, not (?P<size>\d+)", _limit),
    (r"stationary has (?P<a>\d+), moving has (?P<b>\d+)", _pair),
    (r"dimension of size (?P<a>\d+) cannot be split into .*?(?P<b>\d+)", _pair),
    (r"\(\d+(?:, \d+)*,?\).*\(\d+(?:, \d+)*,?\)", _shapes),
    (r"B per partition|alive in", _too_large),
]  # fmt: skip
