"""Shift clocks and call counters ahead, as after a week and a million calls, so that code which waits for a time or a
count shows itself now.
"""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

SECONDS = 7 * 86400.0
CALLS = 1_000_000
#: Items that are taken out of an iterator, or added to a list that grows by one a call.
_ITEMS = 20_000
_ITEM_SECONDS = 0.1
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
#: At most so many places are looked at: a table of data is no count of calls.
_PLACES = 4000


class Clock:
    """Replaces the clocks of ``time`` before the candidate is loaded, so that they can be set ahead."""

    def __init__(self) -> None:
        self._ahead = 0.0
        for name in _CLOCKS:
            for suffix, unit in (("", 1.0), ("_ns", 1e9)):
                real = getattr(time, name + suffix, None)
                if real is not None:
                    setattr(time, name + suffix, self._ticking(real, unit))

    def _ticking(self, real: Callable[[], Any], unit: float) -> Callable[[], Any]:
        def now() -> Any:
            passed = real()
            return passed + type(passed)(self._ahead * unit)

        now.__name__ = now.__qualname__ = real.__name__
        now.__module__ = "time"
        return now

    def advance(self) -> None:
        self._ahead += SECONDS


@dataclass(frozen=True)
class _Place:
    """A place that holds a value; ``read`` and ``write`` access it."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


class Counts:
    """The numbers that change by the same step with every call, wherever the candidate's own code keeps them: in its
    modules and classes, in its functions' defaults, attributes and closures, in containers and small arrays.

    ``root`` is the folder of the candidate's files, ``objects`` are further objects of its making. Call ``look`` after
    each of several calls, then ``advance``.
    """

    def __init__(self, root: str, objects: Sequence[Any] = ()) -> None:
        self._modules = [
            module for module in list(sys.modules.values())
            if isinstance(module, ModuleType) and str(getattr(module, "__file__", None) or "").startswith(root)
        ]  # fmt: skip
        self._names = {module.__name__ for module in self._modules}
        self._objects = list(objects)
        self._places: dict[tuple[Any, ...], _Place] = {}
        self._seen: list[dict[tuple[Any, ...], float]] = []
        self._iterators: dict[tuple[Any, ...], _Place] = {}
        self._lists: dict[tuple[Any, ...], list[Any]] = {}

    def look(self) -> None:
        """Record the number in every place."""
        values: dict[tuple[Any, ...], float] = {}
        self._places.clear()
        for path, place in itertools.islice(self._walk(), _PLACES):
            value = place.read()
            number = len(value) if type(value) is list else _number(value)
            if number is not None:
                values[path] = number
                self._places[path] = place
            elif _is_iterator(value):
                self._iterators[path] = place
        self._seen.append(values)

    def advance(self) -> int:
        """Advance every counter by a million steps; return the number of places that were advanced."""
        moved = 0
        for path, place in self._places.items():
            steps = self._steps(path)
            if not steps or steps[0] == 0 or len(set(steps)) > 1:
                continue
            with suppress(Exception):  # a place that cannot be written counts no calls that matter
                _move(place, steps[0])
                moved += 1
        for place in self._iterators.values():
            with suppress(Exception):
                _use_up(place)
                moved += 1
        return moved

    def _steps(self, path: tuple[Any, ...]) -> list[float]:
        if len(self._seen) < 3 or any(path not in values for values in self._seen[-3:]):
            return []
        last = [values[path] for values in self._seen[-3:]]
        return [round(b - a, 9) for a, b in itertools.pairwise(last)]

    def _walk(self) -> Iterator[tuple[tuple[Any, ...], _Place]]:
        known: set[int] = set()
        waiting: list[tuple[tuple[Any, ...], Any]] = [((m.__name__,), m) for m in self._modules]
        waiting += [((n,), held) for n, held in enumerate(self._objects)]
        while waiting:
            path, holder = waiting.pop()
            if id(holder) in known or len(path) > 6:
                continue
            known.add(id(holder))
            for key, place in _places_in(holder):
                found = (*path, key)
                yield found, place
                value = place.read()
                if self._opens(value):
                    waiting.append((found, value))

    def _opens(self, value: Any) -> bool:
        """Check whether to look inside a value: containers, and the candidate's own functions, classes and objects."""
        if type(value) in (list, dict, tuple) or isinstance(value, CellType):
            return len(value) < _PLACES if isinstance(value, (list, dict, tuple)) else True
        own = value if isinstance(value, (FunctionType, type)) else type(value)
        return own.__module__ in self._names


def _fixed(value: Any) -> _Place:
    """A place that cannot be written; what it holds may have places of its own."""
    return _Place(lambda: value, _refuse)


def _places_in(holder: Any) -> Iterator[tuple[Any, _Place]]:
    if isinstance(holder, list):
        for n in range(len(holder)):
            yield n, _item(holder, n)
    elif isinstance(holder, tuple):
        for n, value in enumerate(holder):
            yield n, _fixed(value)
    elif isinstance(holder, dict):
        for key in list(holder):
            yield str(key)[:80], _item(holder, key)
    elif isinstance(holder, CellType):
        yield "cell", _Place(lambda: holder.cell_contents, lambda v: setattr(holder, "cell_contents", v))
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


def _item(holder: Any, key: Any) -> _Place:
    return _Place(lambda: holder[key], lambda value: holder.__setitem__(key, value))


def _attribute(holder: Any, name: str) -> _Place:
    def read() -> Any:
        held = getattr(holder, "__dict__", {})
        return held[name] if name in held else getattr(holder, name, None)

    return _Place(read, lambda value: setattr(holder, name, value))


def _refuse(_: Any) -> None:
    raise TypeError("this place cannot be written")


def _number(value: Any) -> float | None:
    """A number that may count: an int, a float, or the sum of a small array."""
    if type(value) in (int, float):
        return float(value)
    if isinstance(value, np.ndarray) and 0 < value.size <= 16 and value.dtype.kind in "iuf":
        return float(value.sum())
    torch = sys.modules.get("torch")
    if (
        torch is not None
        and type(value) is torch.Tensor
        and 0 < value.numel() <= 16
        and not value.requires_grad
    ):
        return None if value.is_complex() else float(value.sum())
    return None


def _move(place: _Place, step: float) -> None:
    value = place.read()
    if type(value) is list:
        if step > 0:
            value.extend([value[-1]] * _ITEMS)
    elif type(value) in (int, float):
        place.write(value + type(value)(step * CALLS))
    else:  # an array: all of it may count, or one element
        value += type(value.reshape(-1)[0].item())(step * CALLS)


_RUN_BY_PYTHON = ("cycle", "map", "filter", "zip", "enumerate", "starmap", "accumulate", "takewhile",
                  "dropwhile", "groupby", "filterfalse")  # fmt: skip


def _is_iterator(value: Any) -> bool:
    """Generators, and iterators of Python itself that run no code of the candidate for the next item."""
    kind = type(value)
    known = kind.__module__ in ("itertools", "builtins") and kind.__name__ not in _RUN_BY_PYTHON
    return known and hasattr(kind, "__next__")


def _use_up(place: _Place) -> None:
    """Take items out of an iterator; an endless count goes on as far as any other number."""
    value = place.read()
    if type(value) is itertools.count:
        numbers = [int(n) for n in re.findall(r"-?\d+", repr(value))]
        step = numbers[1] if len(numbers) > 1 else 1
        place.write(itertools.count(numbers[0] + step * CALLS, step))
        return
    ends = time.process_time() + _ITEM_SECONDS
    for _ in itertools.islice(value, _ITEMS):
        if time.process_time() > ends:  # a generator may do real work for each item
            break
