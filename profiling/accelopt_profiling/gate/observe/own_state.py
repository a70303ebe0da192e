"""Find the places in which a candidate's own code keeps values: globals, attributes, closures, defaults, containers."""

from __future__ import annotations

import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import CellType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

#: At most so many places are looked at: a table of data is no state.
PLACES = 4000
_DEEPEST = 6

#: Where a value was found: names and keys from a module on.
Path = tuple[Any, ...]


@dataclass(frozen=True)
class Place:
    """A place that holds a value; ``read`` and ``write`` access it."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


class OwnState:
    """The places of the candidate whose files lie below the folder ``root``.

    ``objects`` are further objects of its making.
    """

    def __init__(self, root: str, objects: Sequence[Any] = ()) -> None:
        self._modules = [
            module for module in list(sys.modules.values())
            if isinstance(module, ModuleType) and str(getattr(module, "__file__", None) or "").startswith(root)
        ]  # fmt: skip
        self._names = {module.__name__ for module in self._modules}
        self._objects = list(objects)

    def places(self) -> Iterator[tuple[Path, Place]]:
        """Return the places that there are now, with their paths."""
        return itertools.islice(self._walk(), PLACES)

    def _walk(self) -> Iterator[tuple[Path, Place]]:
        visited: set[int] = set()
        waiting: list[tuple[Path, Any]] = [((m.__name__,), m) for m in self._modules]
        waiting += [((n,), held) for n, held in enumerate(self._objects)]
        while waiting:
            path, holder = waiting.pop()
            if id(holder) in visited or len(path) > _DEEPEST:
                continue
            visited.add(id(holder))
            for key, place in _places_in(holder):
                place_path = (*path, key)
                yield place_path, place
                value = place.read()
                if self._opens(value):
                    waiting.append((place_path, value))

    def _opens(self, value: Any) -> bool:
        """Check whether to look inside a value: containers, and the candidate's own functions, classes and objects."""
        if isinstance(value, (list, dict, tuple, deque)):
            return len(value) < PLACES
        if isinstance(value, (CellType, SimpleNamespace)) or _is_torch_module(value):
            return True
        if is_array(value):
            return bool(getattr(value, "__dict__", None))
        own = value if isinstance(value, (FunctionType, type)) else type(value)
        return own.__module__ in self._names


def is_array(value: Any) -> bool:
    """Check whether a value is a NumPy array or a torch tensor."""
    torch = sys.modules.get("torch")
    return isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor))


def _is_torch_module(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _fixed(value: Any) -> Place:
    """Return a place that cannot be written. What it holds may have places of its own."""
    return Place(lambda: value, _refuse)


def _places_in(holder: Any) -> Iterator[tuple[Any, Place]]:
    if isinstance(holder, (list, deque)):
        for n in range(len(holder)):
            yield n, _item(holder, n)
    elif isinstance(holder, tuple):
        for n, value in enumerate(holder):
            yield n, _fixed(value)
    elif isinstance(holder, dict):
        for key in list(holder):
            yield str(key)[:80], _item(holder, key)
    elif isinstance(holder, CellType):
        yield "cell", Place(lambda: holder.cell_contents, lambda v: setattr(holder, "cell_contents", v))
    else:
        if isinstance(holder, FunctionType):
            for n, cell in enumerate(holder.__closure__ or ()):
                with suppress(ValueError):
                    cell.cell_contents  # noqa: B018 - an empty cell raises
                    yield ("closure", n), _fixed(cell)
            yield "defaults", _attribute(holder, "__defaults__")
            yield "keywords", _attribute(holder, "__kwdefaults__")
        held = getattr(holder, "__dict__", {})
        for key in list(held):
            if not str(key).startswith("__"):
                yield str(key), _attribute(holder, str(key))
        for key in getattr(type(holder), "__slots__", ()):
            if isinstance(key, str) and hasattr(holder, key):
                yield key, _attribute(holder, key)


def _item(holder: Any, key: Any) -> Place:
    return Place(lambda: holder[key], lambda value: holder.__setitem__(key, value))


def _attribute(holder: Any, name: str) -> Place:
    def read() -> Any:
        held = getattr(holder, "__dict__", {})
        return held[name] if name in held else getattr(holder, name, None)

    return Place(read, lambda value: setattr(holder, name, value))


def _refuse(_: Any) -> None:
    raise TypeError("this place cannot be written")
