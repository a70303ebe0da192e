"""Change the arguments of an inferred call by what a run shows of them."""

from __future__ import annotations

import ast
import sys
from typing import Any

from accelopt_profiling.comparison.values import dtype_name
from accelopt_profiling.problems.inference.arguments import (
    InferredArgument,
    InferredCall,
    NoSizeError,
    names_in,
)
from accelopt_profiling.problems.inference.conventions import usual_size
from accelopt_profiling.problems.inference.entries import EntryCandidate
from accelopt_profiling.problems.inference.guess import add_argument, order_arguments
from accelopt_profiling.problems.inference.usage import FunctionUse

_FRONT = {1: ["columns"], 2: ["rows"], 3: ["batch"], 4: ["heads"], 5: ["groups"]}


class CallSubjects:
    """The arguments of ``call`` and the ``values`` of a run with them.

    Each change returns what it did, None where it cannot be made. With ``reverse`` what shall be equal gets the value
    of its other side.
    """

    def __init__(
        self, call: InferredCall, text: str, use: FunctionUse, entry: EntryCandidate, values: dict[str, Any]
    ) -> None:
        self.reverse = False
        self.call, self._text, self._use, self._entry, self.values = call, text, use, entry, values
        self.parameters = list(use.parameters)[entry.skip :]

    #: Whether a tensor with too many dimensions keeps its last ones, whatever others have.
    keeps_dimensions = False

    def is_tensor(self, value: Any) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(value, torch.Tensor)

    def is_dtype(self, value: Any) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(value, torch.dtype)

    def argument_of(self, value: Any) -> InferredArgument | None:
        """Return the tensor argument that ``value`` is, or is a view of."""
        if not self.is_tensor(value):
            return None
        for name, argument in self.values.items():
            if argument is value:
                return self.call.argument(name)
        for name, argument in self.values.items():
            both = self.is_tensor(argument) and argument.numel() and value.numel()
            if both and argument.untyped_storage().data_ptr() == value.untyped_storage().data_ptr():
                return self.call.argument(name)
        return None

    def named(self, name: str) -> InferredArgument | None:
        return self.call.argument(name)

    def set_rank(self, argument: InferredArgument, rank: int, why: str) -> str | None:
        """Give a tensor ``rank`` dimensions: those of another one of that rank, or more in front, or its last ones."""
        if not 0 <= rank <= 6 or rank == len(argument.dims):
            return None
        alike = next((t for t in self.call.tensors if len(t.dims) == rank and t is not argument), None)
        if self.keeps_dimensions and rank < len(argument.dims):
            argument.dims = argument.dims[len(argument.dims) - rank :]
        elif alike is not None:
            argument.dims = list(alike.dims)
        elif rank < len(argument.dims):
            argument.dims = argument.dims[len(argument.dims) - rank :]
        else:
            while len(argument.dims) < rank:
                name = _FRONT.get(len(argument.dims) + 1, ["size"])[0]
                while name in argument.dims:
                    name += "_2"
                argument.dims.insert(0, self.call.add_size(name, usual_size(name)))
        argument.reason = why
        return f"{argument.name} has {rank} dimensions"

    def set_dims(
        self, argument: InferredArgument, shape: list[int], why: str, plain: bool = False
    ) -> str | None:
        """Give a tensor a shape that a run showed, in words of the call's sizes where they have such values; ``plain``:
        in numbers. What the shape leaves open, -1, stays as it was."""
        if any(size < 1 for size in shape):
            if len(shape) != len(argument.dims):
                return None
            own = [self._size(d) or 1 for d in argument.dims]
            shape = [size if size > 0 else current for size, current in zip(shape, own, strict=True)]
        dims = [str(size) if plain else self.call.expression(size) or str(size) for size in shape]
        if dims == argument.dims:
            return None
        argument.dims, argument.reason = dims, why
        return f"{argument.name} is {tuple(shape)}"

    def set_dtype(self, argument: InferredArgument, dtype: Any, why: str) -> str | None:
        """``dtype`` is one of torch or NumPy, or its name."""
        name = dtype_name(dtype)
        if argument.kind == "value":
            if argument.value == f"torch.{name}":
                return None
            argument.value, argument.reason = f"torch.{name}", why
            return f"{argument.name} is {name}"
        if argument.dtype == name:
            return None
        argument.dtype, argument.reason = name, why
        if name.startswith(("int", "uint")) and argument.fill == "random":
            argument.fill = "index" if name in ("int32", "int64") else "integers"
        if name.startswith(("float", "bfloat")):
            argument.fill = "random"
        return f"{argument.name} is {name}"

    def set_value(self, argument: InferredArgument, value: str, why: str) -> str | None:
        if argument.kind == "value" and argument.value == value:
            return None
        argument.kind, argument.value, argument.reason = "value", value, why
        return f"{argument.name} is {value}"

    def make_tensor(self, name: str, why: str) -> str | None:
        """Pass a tensor for the parameter ``name``: one that was left out, or was taken for something else."""
        return self._give(name, True, why)

    def make_value(self, name: str, why: str, value: str | None = None) -> str | None:
        """Pass a number or the like for the parameter ``name``."""
        return self._give(name, False, why, value)

    def _give(self, name: str, tensor: bool, why: str, value: str | None = None) -> str | None:
        if name not in self._use.parameters or (name in list(self._use.parameters)[: self._entry.skip]):
            return None
        before = self.call.argument(name)
        if before is not None:
            if tensor and before.kind == "tensor":
                return None
            self.call.arguments.remove(before)
        argument = add_argument(self.call, self._text, use=self._use, name=name, tensor=tensor)
        if not tensor and value is not None:
            argument.value = value
        argument.reason = why
        if before is not None and before.kind == argument.kind == "value" and before.value == argument.value:
            return None
        order_arguments(self.call, self._use, self._entry)
        return f"{name} is {'a tensor' if tensor else argument.value}"

    def leave_out(self, name: str, decided: bool = False) -> str | None:
        """Pass nothing for a parameter that has a default, or that somebody else has ``decided``."""
        argument = self.call.argument(name)
        if argument is None or not (decided or self._use.parameters[name].default is not None):
            return None
        self.call.arguments.remove(argument)
        order_arguments(self.call, self._use, self._entry)
        return f"{name} is left out"

    def resize(self, current: int, target: int, why: str) -> str | None:
        """Make what has the size ``current`` have ``target``: two sizes become one, or a size gets another value."""
        if current == target or target < 1 or target > 1 << 24:
            return None
        sizes = {size: name for name, size in self.call.sizes.items()}
        if current in sizes and target in sizes:
            self.call.merge(sizes[target], sizes[current])
            return f"{sizes[current]} is {sizes[target]}"
        if current in sizes:
            self.call.sizes[sizes[current]] = target
            return f"{sizes[current]} is {target}"
        for argument in self.call.arguments:  # a number that is passed is nearer than a product of sizes
            if argument.kind == "value" and self._number(argument) == current:
                return self.set_value(argument, str(target), why)
        expression = self.call.expression(current)
        if expression is not None and (goal := self.call.expression(target)) is not None:
            changed = False
            for tensor in self.call.tensors:
                for at, dimension in enumerate(tensor.dims):
                    if self._size(dimension) == current and dimension != goal:
                        tensor.dims[at], tensor.reason, changed = goal, why, True
            if changed:
                return f"{expression} is {goal}"
        if expression is not None:  # a product of sizes: its largest that can be scaled
            for name in sorted(names_in(expression), key=lambda n: -self.call.sizes[n]):
                scaled = self.call.sizes[name] * target
                if scaled >= current and scaled % current == 0:
                    self.call.sizes[name] = scaled // current
                    return f"{name} is {scaled // current}"
        return None

    def resize_dimension(self, argument: InferredArgument, index: int, target: int, why: str) -> str | None:
        """Give the size that one dimension of a tensor is, wherever it stands, another value; a dimension that is
        computed from sizes gets one of its own."""
        if target < 1 or not -len(argument.dims) <= index < len(argument.dims):
            return None
        name = argument.dims[index]
        current = self._size(name)
        alone = current is not None and list(self.call.sizes.values()).count(current) == 1
        if name in self.call.sizes and not alone:
            if current == target:
                return None
            self.call.sizes[name] = target
            return f"{name} is {target}"
        if current is not None and names_in(name) and (change := self.resize(current, target, why)):
            return change
        return self.set_dimension(argument, index, target, why)

    def set_dimension(self, argument: InferredArgument, index: int, target: int, why: str) -> str | None:
        """Give one dimension of a tensor another size."""
        rank = len(argument.dims)
        if not -rank <= index < rank or target < 1:
            return None
        goal = self.call.expression(target) or str(target)
        if argument.dims[index] == goal:
            return None
        argument.dims[index], argument.reason = goal, why
        return f"{argument.name}.shape[{index}] is {goal}"

    def _size(self, dimension: str) -> int | None:
        try:
            return self.call.size_of(dimension)
        except NoSizeError:
            return None

    def _number(self, argument: InferredArgument) -> int | None:
        try:
            return self.call.size_of(argument.value)
        except NoSizeError:
            try:
                value = ast.literal_eval(argument.value)
            except (ValueError, SyntaxError):
                return None
            return value if type(value) is int else None
