"""Overwrite what a candidate keeps of the data of its calls, so that a result that it takes from there is wrong."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import fingerprint, poison
from accelopt_profiling.gate.observe.own_state import OwnState, Path, Place, is_array


class KeptResults:
    """What a candidate's places (``OwnState``) hold, by content.

    Look after each of two calls on the same data, then call with other data of the same shapes and overwrite what is
    new or another since: it came from data. Tables that depend on shapes, prepared weights, and what counts calls stay
    as they are.
    """

    def __init__(self, state: OwnState) -> None:
        self._state = state
        self._before: dict[Path, bytes] = {}
        self._counts: set[Path] = set()

    def look(self) -> None:
        """Remember what is kept now."""
        held = {path: _content(value) for path, _, value in self._held()}
        self._counts |= {path for path, old in self._before.items() if held.get(path, old) != old}
        self._before = held

    def overwrite(self, least: int = 0) -> list[str]:
        """Overwrite what came since and has ``least`` elements; return the places' names."""
        held = self._held()
        other = [path for path, _, value in held if self._before.get(path) != _content(value)]
        grown = {path[:-1] for path in other if path not in self._before and len(path) > 2}
        changed = set(other)
        names = []
        for path, place, value in held:
            if (path in changed or path[:-1] in grown) and path not in self._counts and _size(value) >= least:
                with suppress(Exception):  # a place that cannot be written stays as it is
                    _spoil(place, value)
                    names.append(".".join(map(str, path)))
        return names

    def _held(self) -> list[tuple[Path, Place, Any]]:
        results = []
        for path, place in self._state.places():
            value = place.read()
            if _is_data(value):
                results.append((path, place, value))
        return results


def turned(value: Any) -> Any:
    """Return the arguments with the elements of each float array moved on by one place; everything else as it is."""
    torch = sys.modules.get("torch")
    if type(value) in (list, tuple):
        return type(value)(turned(v) for v in value)
    if torch is not None and isinstance(value, torch.Tensor) and value.is_floating_point():
        with torch.no_grad():
            return value.copy_(value.clone().roll(1))
    if isinstance(value, np.ndarray) and value.dtype.kind in "fV":
        value[...] = np.roll(value, 1)
    return value


def _is_data(value: Any) -> bool:
    return is_array(value) or type(value) in (float, bytes) or _is_buffer(value)


def _is_buffer(value: Any) -> bool:
    return type(value).__module__ in ("builtins", "array") and type(value).__name__ in ("bytearray", "array")


def _size(value: Any) -> int:
    if is_array(value):
        return int(value.size if isinstance(value, np.ndarray) else value.numel())
    return 1 if isinstance(value, float) else len(value)


def _content(value: Any) -> bytes:
    return bytes(value) if _is_buffer(value) else fingerprint(value)


def _spoil(place: Place, value: Any) -> None:
    torch = sys.modules.get("torch")
    if type(value) is float:
        place.write(float("nan"))
    elif type(value) is bytes:
        place.write(b"\xff" * len(value))
    elif _is_buffer(value):
        np.frombuffer(value, np.uint8)[:] = 0xFF
    elif isinstance(value, np.ndarray):
        poison(value)
    elif torch is not None and (value.is_floating_point() or value.is_complex()):
        with torch.no_grad():
            value.fill_(float("nan"))
