"""Lay out the inputs of timed runs: fresh values in memory that held others before.

A result that is remembered by its address is wrong then, and a kernel that changes its inputs starts from the same
values every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from accelopt_profiling.comparison.values import leaves_in


@dataclass(frozen=True)
class Given:
    """The values of a run, and the set of memory they lie in, both by number."""

    values: int
    memory: int


def pairing(turn: int, sets: int, movable: bool = True) -> Given:
    """Return the run number ``turn``: memory takes turns, and each time round it holds the values of the next
    set."""
    memory = turn % sets
    return Given((memory + turn // sets) % sets if movable else memory, memory)


class RotatingInputs:
    """``sets`` are the tensors that the calls of each set of inputs read, in the same order; none may be there twice.

    Values stay where they are when the sets differ in shape, dtype or layout. A tensor that has elements in the same
    place as others of its own (expanded) is left alone.
    """

    def __init__(self, sets: Sequence[Sequence[Any]]) -> None:
        self._memory = [list(tensors) for tensors in sets]
        self._values = [[tensor.detach().clone() for tensor in tensors] for tensors in self._memory]
        forms = {tuple(_form(tensor) for tensor in tensors) for tensors in self._memory}
        self.movable = len(forms) == 1
        self._turn = 0

    def __call__(self) -> Given:
        """Lay out the inputs of the next run."""
        pair = pairing(self._turn, len(self._memory), self.movable)
        self._turn += 1
        for place, values in zip(self._memory[pair.memory], self._values[pair.values], strict=True):
            if not _overlaps_itself(place):
                place.detach().copy_(values)
        return pair


def _form(tensor: Any) -> tuple[Any, ...]:
    return tuple(tensor.shape), str(tensor.dtype), tuple(tensor.stride()), str(tensor.device)


def _overlaps_itself(tensor: Any) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors in an argument: lists, tuples and dictionaries are looked into."""
    return [v for v in leaves_in(value) if hasattr(v, "data_ptr")]


def on_device(value: Any) -> Any:
    """Return the same argument with its tensors on the GPU.

    Lists, tuples and dictionaries are looked into.
    """
    return each_tensor(value, lambda tensor: tensor.cuda())


def each_tensor(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the same argument with every tensor in it changed. What holds none stays the very same."""
    if not tensors_in(value):
        return value
    if isinstance(value, dict):
        return {name: each_tensor(item, change) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [each_tensor(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return change(value)
