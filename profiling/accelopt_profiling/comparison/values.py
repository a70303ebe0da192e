"""Values as JSON: what JSON has no words for is an object with one key.

``tuple``, ``dict`` (pairs), ``float`` (not finite), ``complex`` and ``dtype`` (of torch) are the same wherever values
are written. Arrays, and what else a format takes, have a key of the format's own; see ``saved_values`` (a folder) and
``recording.value_encoding`` (a recording).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_PLAIN = (bool, int, str, type(None))


def to_json(value: Any, other: Callable[[Any], Any]) -> Any:
    """Return a value as JSON. ``other`` gives that of arrays and of everything that is no plain value."""
    if type(value) in _PLAIN:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) is complex:
        return {"complex": str(value)}
    if type(value) is list:
        return [to_json(v, other) for v in value]
    if type(value) is tuple:
        return {"tuple": [to_json(v, other) for v in value]}
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return {"dict": [[key, to_json(v, other)] for key, v in value.items()]}
    if (type(value).__module__, type(value).__name__) == ("torch", "dtype"):
        return {"dtype": dtype_name(value)}
    return other(value)


def from_json(data: Any, other: Callable[[str, Any], Any]) -> Any:
    """Return the value that ``to_json`` wrote.

    ``other`` makes that of a key which this module does not know.

    Raises:
        ValueError: the data does not have the form.
    """
    if isinstance(data, list):
        return [from_json(v, other) for v in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise ValueError(f"a saved value does not have one kind: {data!r:.200}")
    ((kind, inner),) = data.items()
    if kind == "tuple":
        return tuple(from_json(v, other) for v in inner)
    if kind == "dict":
        return {from_json(k, other): from_json(v, other) for k, v in inner}
    if kind in ("float", "complex"):
        return {"float": float, "complex": complex}[kind](inner)
    return other(kind, inner)


def leaves_in(value: Any) -> Iterator[Any]:
    """Yield the values in lists, tuples and dictionaries, however deep. Any other value itself."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for inner in value:
            yield from leaves_in(inner)
    else:
        yield value


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype of NumPy or torch, as both call it."""
    return str(dtype).removeprefix("torch.")


def reach(shape: Any, strides: Any) -> int:
    """Return how many elements of its memory an array spans, from its first to its last."""
    if 0 in shape:
        return 0
    return 1 + sum((int(n) - 1) * int(s) for n, s in zip(shape, strides, strict=True))
