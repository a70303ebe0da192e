"""Shift clocks and call counters ahead, as after a week and a million calls, so that code which waits for a time or a
count shows itself now.
"""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from accelopt_profiling.gate.observe.own_state import OwnState, Path, Place, is_array

SECONDS = 7 * 86400.0
CALLS = 1_000_000
#: Items that are taken out of an iterator, or added to a list that grows by one a call.
_ITEMS = 20_000
_ITEM_SECONDS = 0.1
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
#: Larger arrays hold data. Longer runs of bytes do too, read as one number in either order.
_ELEMENTS = 1 << 16
_BYTES = 64
_ORDERS: tuple[Literal["little", "big"], ...] = ("little", "big")


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


class Counts:
    """The numbers that change by the same step with every call, wherever the candidate's own code keeps them
    (``OwnState``): plain, in arrays, in bytes, as lengths of lists.

    Call ``look`` after each of several calls, then ``advance``.
    """

    def __init__(self, state: OwnState) -> None:
        self._state = state
        self._places: dict[Path, Place] = {}
        self._seen: list[dict[Path, float]] = []
        self._contents: list[dict[Path, Any]] = []
        self._iterators: dict[Path, Place] = {}

    def look(self) -> None:
        """Record the number in every place."""
        values: dict[Path, float] = {}
        contents: dict[Path, Any] = {}
        self._places.clear()
        for path, place in self._state.places():
            value = place.read()
            number = len(value) if type(value) is list else _number(value)
            if number is not None:
                values[path] = number
                self._places[path] = place
            elif _is_iterator(value):
                self._iterators[path] = place
            if is_array(value) and number is not None:
                with suppress(TypeError):  # a dtype that NumPy lacks
                    contents[path] = np.array(value.detach() if hasattr(value, "detach") else value)
            elif type(value) is bytearray and len(value) <= _BYTES:
                for order in _ORDERS:
                    read = (*path, order)
                    values[read] = int.from_bytes(value, order)
                    self._places[read] = place
        self._seen.append(values)
        self._contents.append(contents)

    def advance(self) -> int:
        """Advance every counter by a million steps. Return the number of places that were advanced."""
        moved = 0
        for path, place in self._places.items():
            steps = self._steps(path)
            if not steps or steps[0] == 0 or len(set(steps)) > 1:
                continue
            with suppress(Exception):  # a place that cannot be written counts no calls that matter
                _move(place, steps[0], path[-1], self._last_step(path))
                moved += 1
        for place in self._iterators.values():
            with suppress(Exception):
                _use_up(place)
                moved += 1
        return moved

    def _last_step(self, path: Path) -> Any:
        """Return what the last call added to an array."""
        before, after = (contents.get(path) for contents in self._contents[-2:])
        return None if before is None or after is None else after - before

    def _steps(self, path: Path) -> list[float]:
        if len(self._seen) < 3 or any(path not in values for values in self._seen[-3:]):
            return []
        last = [values[path] for values in self._seen[-3:]]
        return [round(b - a, 9) for a, b in itertools.pairwise(last)]


def _number(value: Any) -> float | None:
    """Return a number that may count: an int, a float, or the sum of an array."""
    if type(value) in (int, float):
        return float(value)
    if isinstance(value, np.ndarray) and 0 < value.size <= _ELEMENTS and value.dtype.kind in "iuf":
        return float(value.sum(dtype=np.float64))
    torch = sys.modules.get("torch")
    if (
        torch is not None
        and type(value) is torch.Tensor
        and 0 < value.numel() <= _ELEMENTS
        and not value.requires_grad
    ):
        return None if value.is_complex() else float(value.double().sum())
    return None


def _move(place: Place, step: float, key: Any, added: Any) -> None:
    value = place.read()
    if type(value) is list:
        if step > 0:
            value.extend([value[-1]] * _ITEMS)
    elif type(value) in (int, float):
        place.write(value + type(value)(step * CALLS))
    elif type(value) is bytearray:
        moved = (int.from_bytes(value, key) + int(step) * CALLS) % (1 << (8 * len(value)))
        value[:] = moved.to_bytes(len(value), key)
    else:  # an array: the elements that count go on
        added = added * CALLS
        value += (
            added if isinstance(value, np.ndarray) else sys.modules["torch"].from_numpy(np.asarray(added))
        )


_RUN_BY_PYTHON = ("cycle", "map", "filter", "zip", "enumerate", "starmap", "accumulate", "takewhile",
                  "dropwhile", "groupby", "filterfalse")  # fmt: skip


def _is_iterator(value: Any) -> bool:
    """Generators, and iterators of Python itself that run no code of the candidate for the next item."""
    kind = type(value)
    is_builtin = kind.__module__ in ("itertools", "builtins") and kind.__name__ not in _RUN_BY_PYTHON
    return is_builtin and hasattr(kind, "__next__")


def _use_up(place: Place) -> None:
    """Take items out of an iterator. An endless count goes on as far as any other number."""
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
